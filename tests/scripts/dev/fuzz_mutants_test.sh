#!/usr/bin/env bash
# Every line that fuzz_mutants.py changes is in its file, and every fuzzer has one.
set -euo pipefail
scripts/dev/fuzz_mutants.py --check
code=0
said=$(scripts/dev/fuzz_mutants.py --check none 2>&1) || code=$?
[[ $code == 2 && $said == 'fuzz_mutants.py: unknown target none; known: '* ]] ||
  { echo "$code $said"; exit 1; }
