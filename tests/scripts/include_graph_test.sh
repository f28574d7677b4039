#!/usr/bin/env bash
# docs/images/layers.svg is current, and include_graph.py refuses upward arrows and circles.
set -euo pipefail
python3 scripts/dev/include_graph.py --check

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r engine layers models data comm sparsify apps scripts "$copy"
mkdir -p "$copy/docs/images"
cp docs/images/layers.svg "$copy/docs/images"
cd "$copy"

failed=0
# expect TEXT FILE INCLUDE: with INCLUDE in FILE, the script exits with 1 and prints TEXT
expect() {
  local text=$1 file=$2 output
  printf '%s\n' "$3" >"$file"
  if output=$(python3 scripts/dev/include_graph.py --check) || [[ $output != *"$text"* ]]; then
    echo "expected \"$text\" with $3 in $file, got:"
    echo "$output"
    failed=1
  fi
  rm "$file"
}

expect 'engine/core/planted.h:1: upward' engine/core/planted.h '#include "layers/layer.h"'
expect 'circle: engine/core -> ' engine/core/planted.h '#include "engine/io/file.h"'
expect 'not current' layers/planted.h '#include "engine/io/file.h"'
exit $failed
