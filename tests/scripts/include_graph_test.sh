#!/usr/bin/env bash
# include_graph.py sees that docs/images/layers.svg is not current, and rules in a wrong order.
# check_test.sh plants includes that are not allowed.
set -euo pipefail
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r engine layers models data comm sparsify apps scripts "$copy"
mkdir -p "$copy/docs/images"
cp docs/images/layers.svg "$copy/docs/images"
cd "$copy"
scripts/dev/include_graph.py --check

# expect LINE: the script exits with 1 and prints this line only
expect() {
  local output
  ! output=$(scripts/dev/include_graph.py --check) && [[ $output == "$1" ]] && return
  echo "expected: $1; got: $output"
  exit 1
}
echo '#include "engine/io/file.h"' >models/planted.h
sed -i 's|^models:|& engine/io|' scripts/dev/include_rules.txt
expect 'docs/images/layers.svg: include: run scripts/dev/include_graph.py'
sed -i 's|^engine/core:|& engine/io|' scripts/dev/include_rules.txt
expect 'scripts/dev/include_rules.txt: include: engine/core stands before engine/io'
