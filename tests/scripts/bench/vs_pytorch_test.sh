#!/usr/bin/env bash
# vs_pytorch.py has both ratios, to PyTorch as installed and keeping freed memory; torch_step.py
# takes the median of its steps. Programs that print given results, and a module without content,
# replace PyTorch.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/bench" <<'SH'
#!/bin/sh
if [ "$1" = --describe ]; then
  echo '{"build": {"commit": "1234567", "date": "2026-01-02", "compiler": "GCC 1.2",' \
    '"cpu": "A, B"}}'
  exit
fi
echo '{"images_per_s": 1200, "ms_step": 10, "floor_ms": 20, "peak_rss_mib": 100}'
SH
cat >"$work/python" <<'SH'
#!/bin/sh
if [ "$1" = -c ]; then
  echo 1.0
else
  [ "${MALLOC_MMAP_MAX_:-}" = 0 ] && speed=800 || speed=400
  echo "{\"images_per_s\": $speed, \"peak_rss_mib\": 200}"
fi
SH
chmod +x "$work/bench" "$work/python"
scripts/bench/vs_pytorch.py --python "$work/python" --bench "$work/bench" --models resnet20 \
  --rounds 1 --precisions f32 --csv "$work/t.csv" --output "$work/t.json" \
  >"$work/out" 2>"$work/progress"
grep -Eq '^ +f32 +1200 +3\.00 \(f32\) +1\.50 \(f32\) ' "$work/out" || {
  echo "expected the ratios 3.00 (as installed) and 1.50 (keeping memory):"
  cat "$work/out"
  exit 1
}
grep -qx 'Commit: 1234567 (2026-01-02). Compiler: GCC 1.2. CPU: A, B.' "$work/out" || {
  echo "expected the build and the CPU:"
  cat "$work/out"
  exit 1
}
rows=$(grep -c ',1234567,2026-01-02,GCC 1.2,A  B,1.0$' "$work/t.csv")
if [[ $rows != 5 ]] || ! head -n 1 "$work/t.csv" | grep -q ',commit,date,compiler,cpu,torch$'; then
  echo "expected the build, the CPU and PyTorch's version in each row:"
  cat "$work/t.csv"
  exit 1
fi
python3 - "$work/t.json" <<'PY'
import json, sys
found = {(row["commit"], row["torch"]) for row in json.load(open(sys.argv[1]))}
assert found == {("1234567", "1.0")}, found
PY
echo model,batch >"$work/old.csv"
if scripts/bench/vs_pytorch.py --python "$work/python" --bench "$work/bench" --models resnet20 \
  --csv "$work/old.csv" 2>"$work/refused" ||
  ! grep -q 'old.csv has other columns' "$work/refused"; then
  echo "expected a table of other columns to be refused"
  exit 1
fi

# three steps of 0.1, 0.1 and 1 s: the median is 1,280 images/s, the mean 320
found=$(PYTHONPATH=scripts/bench python3 - <<'PY'
import sys, time
from unittest import mock

torch = mock.MagicMock(__version__="1.0")
sys.modules.update({"torch": torch, "torch.nn": torch.nn, "torch_models": mock.MagicMock()})
import torch_step

sys.argv = ["torch_step.py", "--steps", "3", "--warmup", "0"]
with mock.patch.object(time, "perf_counter", side_effect=[0, 0.1, 0.2, 1.2]):
    torch_step.main()
PY
)
[[ $found == '{"images_per_s": 1280.0, '* ]] || {
  echo "expected the median of the steps, 1280 images/s; found $found"
  exit 1
}
