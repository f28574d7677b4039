#!/usr/bin/env bash
# install_deps.sh [MORE_PACKAGES...]: installs what is missing of the packages Thinwire needs.
# Does nothing, and needs neither network nor root, when all of them are there.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

packages=(
  # compiler and build
  g++ cmake ninja-build
  # what the programs stand on
  libdnnl-dev mpich libmpich-dev libcli11-dev nlohmann-json3-dev libfmt-dev
  libjpeg62-turbo-dev
  # tests, benchmarks, checks, curves
  libgtest-dev clang-format clang-tidy python3-matplotlib
  "$@"
)

command -v dpkg-query >/dev/null ||
  die "packages are installed on Debian and its kin only; elsewhere install by hand what" \
    "stands for: ${packages[*]}; then run scripts/build.sh"

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
  echo "install_deps.sh: apt-get update failed; going on with the package lists at hand" >&2
"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
  die "apt-get could not install: ${missing[*]}"
