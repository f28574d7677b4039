#!/usr/bin/env bash
# The command thinwire in the source tree and after `cmake --install`: programs, scripts, launchers,
# unknown commands, missing files, and the files of the installation.
set -euo pipefail
source=$TW_SOURCE build=$TW_BUILD
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
export THINWIRE_CACHE=$build/test-data  # other tests use these generated images, too
unset THINWIRE_BIN

fail() {
  echo "$*"
  cat "$work/said" 2>/dev/null || true
  exit 1
}

# says TEXT COMMAND...: the command succeeds and prints a line with the text
says() {
  local text=$1
  shift
  "$@" >"$work/said" 2>&1 || fail "$* fails:"
  grep -qF -- "$text" "$work/said" || fail "$* does not print: $text"
}

prefix=$work/prefix
cmake --install "$build" --prefix "$work/first" >"$work/said" || fail "installation fails:"
mv "$work/first" "$prefix"  # nothing depends on the place
touch "$work/installed"
thinwire=$prefix/bin/thinwire
cd "$work"

says 'Usage: thinwire COMMAND' "$thinwire"
says 'Usage: thinwire COMMAND' "$thinwire" --help
says 'thinwire ' "$thinwire" --version
mapfile -t commands < <("$thinwire" | awk '/^  / { print $1 }')
((${#commands[@]} > 10)) || fail "only ${#commands[@]} commands"
for command in "${commands[@]}"; do
  says "" "$thinwire" "$command" --help
done
refuses 'unknown command trian; nearest is train' "$thinwire" trian
refuses 'unknown command anlyze; nearest is analyze' "$thinwire" anlyze
refuses 'the command is missing before --model' "$thinwire" --model mlp
refuses 'unknown flag --modl; nearest is --model' "$thinwire" train --modl mlp

options=(--model mlp --epochs 1 --max-steps 20 --precision f32 --threads-per-rank 1)
says 'top-1' "$thinwire" train "${options[@]}" --name one
says 'top-1' "$prefix/bin/train" "${options[@]}" --workers 2 --name threads
ln -s "$thinwire" "$work/link"
says one "$work/link" list
says one "$thinwire" compare runs/one runs/threads
says report.html "$thinwire" report runs/one runs/threads -o report.html
says claim "$thinwire" repro list
for one in race repro; do refuses 'no runs in' "$thinwire" "$one" show --output-dir none; done
if python3 -c 'import matplotlib' 2>/dev/null || /usr/bin/python3 -c 'import matplotlib'; then
  says curves.png "$thinwire" plot runs/one -o curves.png
  [[ -s curves.png ]] || fail "no curves.png"
fi
# the scripts that start programs find them and the configurations
says E1/dense "$thinwire" repro run E1 --dry-run
refuses 'needs the source tree' "$thinwire" repro run B4-torch
if grep -q TW_WITH_MPI "$build/compile_commands.json"; then
  mpirun=$(sed -n 's/^MPIEXEC_EXECUTABLE:.*=//p' "$build/CMakeCache.txt")
  export ASAN_OPTIONS=detect_leaks=0  # of the MPI library
  says 'top-1' "$mpirun" -n 2 "$thinwire" train "${options[@]}" --name ranks
  hash() { sed -n 's/.*"weights_hash": *"\(.*\)".*/\1/p' "runs/$1/summary.json"; }
  [[ -n $(hash ranks) && $(hash ranks) == "$(hash threads)" ]] || fail "mpirun: other weights"
fi

# nothing is written into the installation, and nothing of the source tree is needed
! find "$prefix" -newer "$work/installed" -type f | grep . || fail "files were added"
! find "$prefix" -name __pycache__ | grep . || fail "Python has written there"
! grep -rlF "$source" "$prefix/share" "$thinwire" || fail "names the source folder"
for file in share/thinwire/{README.md,configs/resnet20-cifar10.json,docs/README.md} \
  share/doc/thinwire/copyright; do
  [[ -s $prefix/$file ]] || fail "$file is missing"
done

[[ ! -e $prefix/share/thinwire/docs/results ]] || fail "kept results are installed"

# a build of one program installs it, and names what is left out; here a copy of the build folder
# without the other programs and the manual pages
mkdir -p "$work/partial/bin"
cp "$build/bin/train" "$work/partial/bin"
(cd "$build" && find . -name cmake_install.cmake -exec cp --parents {} "$work/partial" ';' &&
  cp -r --parents CMakeFiles/Export thinwire.pc thinwireConfigVersion.cmake "$work/partial")
find "$work/partial" -name cmake_install.cmake -exec sed -i "s,$build,$work/partial,g" {} +
says 'Left out, as it is not built: bench' cmake --install "$work/partial" --prefix "$work/few"
says 'the target manual is not built' cmake --install "$work/partial" --prefix "$work/few"
says 'thinwire ' "$work/few/bin/thinwire" train --version
refuses 'the program bench is missing' "$work/few/bin/thinwire" bench

# in the source tree
cd "$work"
says 'thinwire ' env THINWIRE_BIN="$build/bin" "$source/scripts/thinwire" --version
refuses "THINWIRE_BIN is $work, which has no program train" \
  env THINWIRE_BIN="$work" "$source/scripts/thinwire" train
says one "$source/scripts/thinwire" list
cp "$source/scripts/thinwire" "$work/alone"
refuses 'the program train is missing' "$work/alone" train
refuses 'the script plot.py is missing' "$work/alone" plot
