#!/usr/bin/env bash
# install_deps.sh [--no-tests] [MORE_PACKAGES...]: installs the missing Debian packages that
# Thinwire needs; with --no-tests, not those of tests and checks. Does nothing, and needs neither
# network nor root, when all are installed.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

packages=(
  # compiler and build
  g++ cmake ninja-build
  # libraries
  libdnnl-dev mpich libmpich-dev libcli11-dev nlohmann-json3-dev libfmt-dev
  libjpeg62-turbo-dev libspng-dev libwebp-dev zlib1g-dev libutf8proc-dev
  # plots
  python3-matplotlib
)
if [[ ${1:-} == --no-tests ]]; then
  shift
else
  packages+=(libgtest-dev clang-format clang-tidy-16 python3-jsonschema python3-pandas)
fi
packages+=("$@")

command -v dpkg-query >/dev/null ||
  die "this script needs Debian or a derivative; elsewhere install the equivalents of" \
    "${packages[*]}, then run scripts/build.sh"

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

say "installing ${missing[*]}"
root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || die "needs root for: apt-get install ${missing[*]}"
  root=(sudo)
fi
"${root[@]}" apt-get update -qq ||
  echo "install_deps.sh: apt-get update failed; continuing with the current package lists" >&2
"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
  die "apt-get could not install: ${missing[*]}"
