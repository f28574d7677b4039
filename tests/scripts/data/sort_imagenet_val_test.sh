#!/usr/bin/env bash
# sort_imagenet_val.sh moves every image into the folder of its class, also with arguments relative
# to the caller's folder and with a list whose last line has no newline; a second run continues.
set -euo pipefail
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" && exit 1; }

mkdir "$work/val"
touch "$work"/val/ILSVRC2012_val_0000000{1,2,3}.JPEG
cd "$work"
printf 'ImageId,PredictionString\nILSVRC2012_val_00000001,n01751748 1 2 3 4\n' >labels
printf 'ILSVRC2012_val_00000002.JPEG n01751748\nILSVRC2012_val_00000003.JPEG n02110185' >>labels
output=$("$root/scripts/data/sort_imagenet_val.sh" val labels) || fail "exit code $?: $output"
[[ $output == "3 images moved, 0 missing, 0 files without a class left in $work/val" ]] ||
  fail "$output"
[[ $(cd val && echo */*) == "n01751748/ILSVRC2012_val_00000001.JPEG \
n01751748/ILSVRC2012_val_00000002.JPEG n02110185/ILSVRC2012_val_00000003.JPEG" ]] ||
  fail "$(find val)"

touch val/ILSVRC2012_val_00000004.JPEG
output=$(cd val && "$root/scripts/data/sort_imagenet_val.sh" . ../labels) && fail "$output"
[[ $output == "0 images moved, 0 missing, 1 files without a class left in $work/val" ]] ||
  fail "$output"
