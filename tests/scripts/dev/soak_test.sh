#!/usr/bin/env bash
# soak.py: a short run is flat, and a process that grows is not.
set -euo pipefail
bin=$TW_BUILD/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# AddressSanitizer keeps freed memory, by default until there is much of it
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:quarantine_size_mb=1
export THINWIRE_CACHE=$TW_BUILD/test-data

scripts/dev/soak.py --steps 1500 --train "$bin/train" >"$work/out" || { cat "$work/out"; exit 1; }
grep -q '^steps.csv: 1500 rows' "$work/out"
grep -q '^checkpoints: 2 ' "$work/out"

# a program that writes the same files, but keeps memory and descriptors
cat >"$work/leak" <<'LEAK'
#!/usr/bin/env python3
import pathlib
import sys
import time
folder = pathlib.Path(sys.argv[sys.argv.index("--output-dir") + 1]) / "soak"
(folder / "checkpoints").mkdir(parents=True)
kept = []
with (folder / "steps.csv").open("w") as table:
    print("step", file=table)
    for step in range(1500):
        print(step, file=table, flush=True)
        kept.append(bytearray(100_000))
        if step % 100 == 0:
            kept.append(open("/dev/null"))
        time.sleep(0.002)
LEAK
chmod +x "$work/leak"
code=0
scripts/dev/soak.py --steps 1500 --train "$work/leak" >"$work/out" || code=$?
[[ $code == 1 ]] || { echo "exit code $code, not 1"; cat "$work/out"; exit 1; }
grep -q 'not flat: resident memory grew' "$work/out"
grep -q 'not flat: descriptors grew' "$work/out"
