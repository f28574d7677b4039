#!/usr/bin/env bash
# check_package.sh [FOLDER]: builds the Debian package and tries it in a bare Debian 12: installs it
# with apt, trains an epoch, and with the recommended packages exports and draws it, runs a sweep, a
# claim's dry run, two ranks under mpirun, doctor and the completion; then removes it and compares
# the list of files with the one before. FOLDER (default: build-package)
# holds the build and the Debian root. Needs root, debootstrap and network; skips without, with exit
# code 77. The package is built without CUDA, whose libraries Debian does not have.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

folder=$(path_of "${1:-$PWD/build-package}") mirror=${MIRROR:-http://deb.debian.org/debian}
((EUID == 0)) || skip "needs root"
command -v debootstrap >/dev/null || skip "needs debootstrap (apt-get install debootstrap)"

mkdir -p "$folder"
root=$folder/root
if [[ ! -f $folder/bare.tar ]]; then
  say "a bare Debian 12"
  rm -rf --one-file-system "$root"
  debootstrap --variant=minbase bookworm "$root" "$mirror" >"$folder/log" 2>&1 ||
    skip "debootstrap failed (no network?): $(tail -n 1 "$folder/log")"
  tar -C "$root" -cf "$folder/bare.tar" .
fi

say "the package"
cmake -G Ninja -S . -B "$folder/build" -DWITH_CUDA=OFF -DWITH_TESTS=OFF >"$folder/log" ||
  die "configuration failed: $(tail -n 3 "$folder/log")"
quietly cmake --build "$folder/build"
rm -f "$folder"/build/*.deb
(cd "$folder/build" && cpack >"$folder/log") || die "cpack failed: $(tail -n 3 "$folder/log")"
deb=$(echo "$folder"/build/thinwire_*.deb)
dpkg-deb --field "$deb" Package Version Installed-Size Depends Recommends

say "installation"
rm -rf --one-file-system "$root"
mkdir "$root"
tar -C "$root" -xf "$folder/bare.tar"
trap 'umount "$root/proc"' EXIT
mount -t proc proc "$root/proc"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv/day bash -euc "$1"; }
quiet_apt='DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o Dpkg::Use-Pty=0'
# all that is not the package manager's own state
files() {
  inside 'cd / && find boot etc home opt usr var -xdev |
    grep -vE "^var/(cache|log|lib/(dpkg|apt|python|systemd))|^etc/(ld.so.cache|.*[.]dpkg-)" | sort'
}
apt() { inside "cd / && $quiet_apt --no-install-recommends $*" >"$folder/log" 2>&1 ||
  die "apt-get $* failed: $(tail -n 3 "$folder/log")"; }
mkdir "$root/srv/day"
cp "$deb" "$root/thinwire.deb"
apt update
apt install ./thinwire.deb
inside 'cd /srv/day && thinwire train --epochs 1 --workers 2 --batch-size 128 --name first' |
  tail -n 2
apt purge thinwire

say "use with the recommended packages"
apt install python3-matplotlib mpich bash-completion
files >"$folder/before"
! grep thinwire "$folder/before" || die "files are left"
apt install ./thinwire.deb
# shellcheck disable=SC2016
inside '
  cd /srv/day
  thinwire --version | head -n 2
  ! ls /usr/bin/train /usr/bin/bench /usr/bin/pack 2>/dev/null
  thinwire train --config /usr/share/thinwire/configs/resnet20-cifar10.json --dataset shapes \
    --val-size 0 --max-steps 3 --epochs 1 --name recipe >log
  thinwire plot runs/first -o curves.png
  thinwire report runs/first -o page.html
  thinwire list
  thinwire repro run E1 --dry-run | tail -n 2
  mpirun -n 2 thinwire train --model mlp --epochs 1 --max-steps 20 --name ranks | tail -n 1
  thinwire export runs/first -o model.onnx
  echo "{\"model\": \"mlp\", \"max_steps\": 2, \"sweep\": {\"seed\": [1, 2]}}" >grid.json
  thinwire train --config grid.json | tail -n 1
  thinwire doctor --seconds 2 || [ $? = 1 ]  # a problem of this machine
  ls /usr/share/man/man1/thinwire*.1.gz /usr/share/man/man1/thinwire*.1 2>/dev/null | head -n 3
  bash -ic ". /usr/share/bash-completion/bash_completion; _completion_loader thinwire
    COMP_WORDS=(thinwire tra); COMP_CWORD=1; _thinwire; echo \"\${COMPREPLY[@]}\"" 2>/dev/null'
# what Python would leave if somebody ran a script as root without thinwire
inside '/usr/share/thinwire/scripts/compare.py --help >/dev/null
  find /usr/share/thinwire -name __pycache__ | grep -q . || echo "Python has left nothing"'

say "removal"
apt purge thinwire
files >"$folder/after"
diff "$folder/before" "$folder/after" || die "files differ after removal"
echo "no file is left of $(dpkg-deb --contents "$deb" | grep -c '^-')"
