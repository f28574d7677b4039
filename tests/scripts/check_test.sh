#!/usr/bin/env bash
# The project keeps its own rules, and check.sh sees each kind of violation.
set -euo pipefail
scripts/check.sh --fast

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r CMakeLists.txt CMakePresets.json README.md .clang-format .clang-tidy scripts engine sparsify \
  layers models data comm apps tests "$copy"
cd "$copy"

failed=0
# expect RULE FILE TEXT: with TEXT in FILE, check.sh fails with one line that names both
expect() {
  local rule=$1 file=$2 output
  printf '%b\n' "$3" >"$file"
  if output=$(scripts/check.sh --fast) || [[ $(wc -l <<<"$output") != 1 ]] ||
    [[ $output != "$file:"*": $rule: "* ]]; then
    echo "expected one violation of $rule in $file, got:"
    echo "${output:-none}"
    failed=1
  fi
  rm "$file"
}

long=$(printf '\\n%.0s' {1..401})
wide=$(printf 'x%.0s' {1..99})
expect format engine/planted.cpp 'int  a;'
expect include engine/planted.cpp '#include "layers/layer.h"'
expect include comm/planted.h '#include "sparsify/selector.h"'
expect include sparsify/planted.h '#include <mpi.h>'
expect include engine/planted.h '#include <oneapi/dnnl/dnnl.hpp>'
expect include layers/planted.h '#include "engine/onednn.h"'
expect size scripts/planted.py "#$long"
expect size engine/planted.h "// $wide"
expect unfinished models/planted.cpp '// TO''DO: the rest'
expect path tests/planted.cpp '// see /wor''k/main'
expect path scripts/planted.sh '#!/bin/sh\nls ..''/shared'
if command -v shellcheck >/dev/null; then
  expect shell scripts/planted.sh '#!/bin/sh\nunused=1'
fi
exit $failed
