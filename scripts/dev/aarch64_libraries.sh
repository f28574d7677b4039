#!/usr/bin/env bash
# aarch64_libraries.sh: unpacks Debian's arm64 packages of the libraries that the preset aarch64
# links in build-aarch64/sysroot. Installs nothing; needs no root.
set -euo pipefail
build=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build-aarch64
# package lists of its own, so that the system keeps its architecture
mkdir -p "$build/apt/lists/partial" "$build/apt/archives/partial" "$build/sysroot"
cd "$build/apt"
: >status
options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$build/apt"
  -o "Dir::State::status=$build/apt/status" -o "Dir::Cache=$build/apt"
  -o "APT::Sandbox::User=$(id -un)")
apt-get "${options[@]}" update
apt-get "${options[@]}" download libcli11-dev libdnnl2 libdnnl-dev libfmt9 libfmt-dev libgtest-dev \
  libjpeg62-turbo libjpeg62-turbo-dev libspng0 libspng-dev libutf8proc2 libutf8proc-dev libwebp7 \
  libwebpdemux2 libwebp-dev nlohmann-json3-dev zlib1g zlib1g-dev
for package in *.deb; do dpkg -x "$package" "$build/sysroot"; done
