#!/usr/bin/env bash
# nights.py: a few faults under thinwire run change nothing, and a planted defect is found. Skipped
# without root, network namespaces or mpirun.
set -euo pipefail
# shellcheck source=tests/support/programs/networks.sh
. tests/support/programs/networks.sh

code=0
scripts/dev/nights.py --train "$bin/train" --faults 4 --seed 5 kill host disk damage link \
  >"$work/out" 2>&1 || code=$?
[[ $code != 77 ]] || exit 77
cat "$work/out"
[[ $code == 0 ]] && grep -q ' faults in .* nights, 0 failed$' "$work/out"

# the planted defect: a later start trains with another rate
cat >"$work/train" <<'END'
#!/usr/bin/env bash
[[ $1 == --describe ]] || echo start >>"$0.starts"
(($(wc -l <"$0.starts") <= 5)) || set -- "${@/#0.01/0.02}"  # a run alone, and four ranks
exec "$TW_BUILD/bin/train" "$@"
END
chmod +x "$work/train"
scripts/dev/nights.py --train "$work/train" --faults 1 kill >"$work/out" 2>&1 &&
  { echo "the defect is not found" && cat "$work/out" && exit 1; }
grep -q 'FAIL, exit code 0, weights' "$work/out" || { cat "$work/out" && exit 1; }
