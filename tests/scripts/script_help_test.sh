#!/usr/bin/env bash
# --help of every script that includes common.sh prints its first comment and does nothing else.
set -euo pipefail
tested=0
while read -r script; do
  [[ $script != scripts/lib/* && -x $script ]] || continue
  text=$("$script" --help) || { echo "$script --help fails"; exit 1; }
  [[ $text == "$(basename "$script")"* ]] || { echo "$script --help prints: $text"; exit 1; }
  [[ $text != *shellcheck* && $text != *'#'* ]] || { echo "$script --help prints code"; exit 1; }
  tested=$((tested + 1))
done < <(grep -l 'lib/common.sh' scripts/*.sh scripts/*/*.sh)
((tested > 5)) || { echo "only $tested scripts found"; exit 1; }
