#!/usr/bin/env bash
# Downloads CIFAR-10's binary version to DIR/cifar-10-batches-bin (default DIR: data-cache).
#
#   scripts/data/get_cifar10.sh [DIR]
#
# Checks the archive against the published md5 before it unpacks it. The folder appears only when it
# is complete. A second call does nothing.
set -euo pipefail

address=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
md5=c32a1d4ab5d03f1284b67883e8d87530
folder=cifar-10-batches-bin
record_file_bytes=30730000

die() {
  echo "get_cifar10: $*" >&2
  exit 1
}

case ${1:-} in
-*)
  [ "$1" = --help ] || [ "$1" = -h ] || die "unknown option $1; usage: get_cifar10.sh [DIR]"
  sed -n '2,7s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
esac
[ $# -le 1 ] || die "usage: get_cifar10.sh [DIR]"
dir=${1:-${THINWIRE_CACHE:-data-cache}}

# whether folder $1 has all six files in full length
complete() {
  local name
  for name in data_batch_{1,2,3,4,5} test_batch; do
    [ -f "$1/$name.bin" ] && [ "$(wc -c <"$1/$name.bin")" -eq $record_file_bytes ] || return 1
  done
}

if complete "$dir/$folder"; then
  echo "CIFAR-10 is already in $dir/$folder"
  exit 0
fi
[ ! -e "$dir/$folder" ] || die "$dir/$folder exists but is incomplete; remove it and try again"

mkdir -p "$dir" 2>/dev/null || die "cannot create folder $dir"
work=$(mktemp -d "$dir/.get_cifar10.XXXXXX") || die "cannot write in $dir"
trap 'rm -rf "$work"' EXIT
archive=$work/cifar-10-binary.tar.gz

if command -v curl >/dev/null; then
  curl --fail --location --retry 3 --connect-timeout 20 --output "$archive" "$address" ||
    die "cannot download $address (no network?)"
elif command -v wget >/dev/null; then
  wget --tries=3 --timeout=20 --output-document="$archive" "$address" ||
    die "cannot download $address (no network?)"
else
  die "needs curl or wget; neither is installed"
fi

if command -v md5sum >/dev/null; then
  found=$(md5sum <"$archive" | cut -d ' ' -f 1)
else
  found=$(md5 -q "$archive") || die "needs md5sum or md5 to verify the download"
fi
[ "$found" = $md5 ] || die "$address has md5 $found, expected $md5: nothing was unpacked"

tar -xzf "$archive" -C "$work" || die "cannot unpack the archive in $dir (disk full?)"
complete "$work/$folder" || die "the archive does not have six complete files"
# without -T, mv would move the folder into one that a parallel call has just created
mv -T "$work/$folder" "$dir/$folder" 2>/dev/null || complete "$dir/$folder" ||
  die "cannot move the files to $dir/$folder"
echo "CIFAR-10 is in $dir/$folder"
