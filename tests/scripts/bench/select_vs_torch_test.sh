#!/usr/bin/env bash
# select_vs_torch.py: both selections of PyTorch send the largest entries and clear them, and the
# table has them beside those of `bench select`. Without PyTorch, the claim that runs it says so.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! python3 -c 'import torch' 2>/dev/null; then
  code=0
  scripts/repro.py run B4-torch --output-dir "$work/out" >"$work/said" 2>&1 || code=$?
  if [[ $code != 2 ]] || ! grep -q "needs PyTorch" "$work/said"; then cat "$work/said" && exit 1; fi
  echo "skipped: python3 has no PyTorch"
  exit 77
fi
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=scripts/bench python3 - <<'PY'
import torch
from select_vs_torch import SELECTIONS, step

for name, selection in SELECTIONS.items():
    e = torch.tensor([1.0, -3.0, 0.5, 2.0])
    indices, values = step(torch.tensor([1.0, -1.0, 0.0, 2.0]), e, 2, selection)
    assert sorted(zip(indices.tolist(), values.tolist())) == [(1, -4.0), (3, 4.0)], name
    assert e.tolist() == [2.0, 0.0, 0.5, 0.0], name
PY
scripts/bench/select_vs_torch.py --bench "${TW_BUILD:-build}/bin/bench" --d 1000 --density 0.01 \
  --distribution gaussian --repeat 1 --csv "$work/t.csv" >/dev/null
for row in topk std::nth_element torch.topk torch.sort; do
  grep -q "^cpu,gaussian,1000,0.01,$row," "$work/t.csv" || { echo "no $row"; exit 1; }
done
