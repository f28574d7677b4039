#!/usr/bin/env bash
# The project keeps its own rules, and check.sh sees each kind of violation.
set -euo pipefail
scripts/check.sh --fast

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r CMakeLists.txt CMakePresets.json README.md .clang-format .clang-tidy scripts engine sparsify \
  layers models data comm apps tests configs "$copy"
cd "$copy"

# plant RULE FILE TEXT: a file that breaks one rule, which check.sh is to name in one line
expected=()
plant() {
  local rule=$1 file=$2
  printf '%b\n' "$3" >"$file"
  expected+=("$file $rule")
}

wide=$(printf 'x%.0s' {1..99})
plant format engine/device/planted_format.cpp 'int  a;'
plant include engine/core/planted_upward.cpp '#include "layers/layer.h"'
plant include comm/planted_sibling.h '#include "sparsify/selector.h"'
plant include sparsify/planted_mpi.h '#include <mpi.h>'
plant include engine/core/planted_dnnl.h '#include <oneapi/dnnl/dnnl.hpp>'
plant include sparsify/kernels/planted_kernel.h '#include "engine/cuda/cuda_kernel.h"'
plant name apps/advise/planted_name.cpp 'const char* planted = "gtopk";'
plant name apps/advise/planted_list.cpp 'const char* planted = "other,gtopk";'
plant name sparsify/planted_key.cpp 'const char* planted = "lp.block";'
plant name sparsify/planted_group.cpp 'const char* planted = "wire.values";'
plant size engine/core/planted_wide.h "// $wide"
# What is planted counts in other folders too, whose bounds may be as near as one line.
sed -i 's/^lines .* apps$/lines 10 20 apps/; t; s/^lines  *[0-9]*  *[0-9]*/lines 0 99999/' \
  scripts/dev/budget.txt
expected+=("apps budget")
plant unfinished models/planted_todo.cpp '// TO''DO: the rest'
plant path tests/planted_path.cpp '// see /wor''k/main'
plant path scripts/planted_path.sh '#!/bin/sh\nls ..''/shared'
if command -v mypy >/dev/null; then
  plant type scripts/planted_type.py 'import os\n\nos.getpid().none()'
fi
if command -v shellcheck >/dev/null; then
  plant shell scripts/planted_shell.sh '#!/bin/sh\nunused=1'
fi

if output=$(scripts/check.sh --fast); then
  echo "check.sh finds nothing in files that break its rules"
  exit 1
fi
found=$(sed -E 's/^([^:]*):([0-9]+:)* ([a-z]+): .*/\1 \3/' <<<"$output" | sort)
diff <(printf '%s\n' "${expected[@]}" | sort) <(printf '%s\n' "$found")
