#!/usr/bin/env bash
# Python scripts answer a wrong option with one line that names them as the user did and the nearest
# flag, and with exit code 2.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
export MPLCONFIGDIR=$work

thinwire=scripts/thinwire
refuses 'compare.py: unknown flag --cvs; nearest is --csv; --help lists all' \
  scripts/compare.py --cvs "$work"
refuses 'thinwire compare: unknown flag --cvs; nearest is --csv; --help lists all' \
  "$thinwire" compare --cvs=1
refuses 'thinwire compare: unknown flag -x; --help lists all' "$thinwire" compare -x
refuses 'compare.py: RUN is missing; --help lists all' scripts/compare.py
refuses 'compare.py: --odd: not a folder' scripts/compare.py -- --odd
refuses 'report.py: RUN is missing; --help lists all' scripts/report.py
refuses 'thinwire report: --title is given twice' "$thinwire" report r --title a --title=b
refuses 'thinwire report: none: not a folder' "$thinwire" report none
refuses 'thinwire watch: --every: expected a number; found x' "$thinwire" watch --every x
refuses 'thinwire list: --where needs a value' "$thinwire" list --where
# a process that a script starts is not what the user called
refuses 'compare.py: RUN is missing; --help lists all' \
  env THINWIRE_NAME='1 thinwire compare' scripts/compare.py
for words in "report" "list" "report --adv x --adv=y r"; do
  read -ra words <<<"$words"
  "$thinwire" "${words[@]}" --help >"$work/said"
  grep -q "^usage: thinwire ${words[0]} " "$work/said"
  grep -qE "^thinwire ${words[0]} .*: " "$work/said"
done
if scripts/plot.py --help >/dev/null 2>&1; then
  refuses 'plot.py: unknown flag --advise; nearest is --advice; --help lists all' \
    scripts/plot.py --advise x.csv
  refuses 'plot.py: RUN, --advice or --confusion or --compressors is missing; --help lists all' \
    scripts/plot.py
  refuses 'plot.py: --advice is given twice' scripts/plot.py --advice a.csv --advice b.csv
  refuses 'plot.py: --advice draws one table and no runs; found b.csv beside it' \
    scripts/plot.py --advice a.csv b.csv
fi

# the commands on a full disk
code=0
"$thinwire" 2>"$work/said" >/dev/full || code=$?
[[ $code == 1 ]]
[[ $(cat "$work/said") == \
  'thinwire: cannot write to standard output: No space left on device' ]]
