#!/usr/bin/env bash
# sort_imagenet_val.sh VAL_DIR LABELS: moves ImageNet's 50,000 validation images from one folder to
# one folder per class. LABELS has a line per image: its name and its class
# (`ILSVRC2012_val_00000001.JPEG n01751748`), separated by blanks or a comma. A second run
# continues.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

(($# == 2)) || die "usage: sort_imagenet_val.sh VAL_DIR LABELS"
dir=$(path_of "$1") labels=$(path_of "$2")
[[ -d $dir ]] || die "$1 is not a folder"
[[ -r $labels ]] || die "cannot read $2"

moved=0 missing=0
# a last line without a newline makes `read` fail, but is read
while IFS=$', \t\r' read -r image class _ || [[ -n $image ]]; do
  [[ $class =~ ^n[0-9]{8}$ ]] || continue  # a heading or other text
  image=${image%.JPEG}.JPEG
  if [[ -f $dir/$image ]]; then
    mkdir -p "$dir/$class"
    mv "$dir/$image" "$dir/$class/"
    moved=$((moved + 1))
  elif [[ ! -f $dir/$class/$image ]]; then
    missing=$((missing + 1))
  fi
done <"$labels"
left=$(find "$dir" -maxdepth 1 -type f | wc -l)
echo "$moved images moved, $missing missing, $left files without a class left in $dir"
((missing == 0 && left == 0))
