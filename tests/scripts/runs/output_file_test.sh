#!/usr/bin/env bash
# report.py and plot.py write the file of -o: a link stays and its target is replaced, a pipe and a
# device are written in place, and a full device ends with one line and exit code 1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export MPLCONFIGDIR=$work/mpl
python3 tests/scripts/runs/make_runs.py "$work/runs" 40
scripts=(report.py)
if scripts/plot.py --help >/dev/null 2>&1; then scripts+=(plot.py); else echo "no matplotlib"; fi

# ended CODE TEXT SCRIPT TARGET: the exit code of the script and one line that holds TEXT
ended() {
  local code=0
  "scripts/$3" "$work/runs/dense" -o "$work/$4" >"$work/said" 2>&1 || code=$?
  [[ $code == "$1" && $(wc -l <"$work/said") == 1 ]] && grep -qF -- "$2" "$work/said" && return
  { echo "$3 -o $4: expected $1 and $2; got $code:" && cat "$work/said"; } >&2
  exit 1
}

for script in "${scripts[@]}"; do
  kind=$([[ $script == report.py ]] && echo HTML || echo PNG)
  # a file of another kind stays, one of the same kind and an empty one are replaced
  for text in old '{"a": 1}' $'\xff\xd8\xff' $'PK\x03\x04' '<svg>' 'a,b'; do
    echo "$text" >"$work/file.png"
    cp "$work/file.png" "$work/copy"
    ended 2 "$work/file.png exists and is no $kind file of Thinwire: name another file" \
      "$script" file.png
    cmp "$work/file.png" "$work/copy"
  done
  # a photograph stays, too
  cp tests/data/image/gray8.png "$work/file.png"
  ended 2 "is no $kind file of Thinwire" "$script" file.png
  cmp "$work/file.png" tests/data/image/gray8.png
  : >"$work/file.png"
  ended 0 file.png "$script" file.png
  truncate -s 100 "$work/file.png"
  ln -sf file.png "$work/link.png"
  ended 0 link.png "$script" link.png
  [[ -L $work/link.png && $(stat -c %s "$work/file.png") -gt 4000 ]]
  rm "$work/file.png"  # the link leads nowhere
  ended 0 link.png "$script" link.png
  [[ -L $work/link.png && -f $work/file.png ]]

  mkfifo "$work/pipe"
  cat "$work/pipe" >"$work/read" &
  ended 0 pipe "$script" pipe
  wait "$!"
  [[ -p $work/pipe && $(stat -c %s "$work/read") -gt 4000 ]]
  rm "$work/pipe"

  ended 2 "none/page.png: No such file or directory" "$script" none/page.png
  ended 2 "runs: Is a directory" "$script" runs
  if mknod "$work/full" c 1 7 2>/dev/null && [[ -c $work/full ]] && : >"$work/full"; then
    ended 1 "full: No space left on device" "$script" full
    [[ -c $work/full ]]
    rm "$work/full"
  else
    echo "left out: no device can be made here"
    rm -f "$work/full"
  fi
  [[ -z $(find "$work" -name '*.part*') ]]
done
