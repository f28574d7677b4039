#!/usr/bin/env bash
# Runs the commands of README.md and docs/*.md as they stand, and compiles their ```cpp blocks.
# Each ```sh block follows a mark:
#   <!-- run -->             run here, in an empty folder
#   <!-- run: exit code 0 or 1 -->   run here, one command that ends with one of these codes
#   <!-- run: cifar-10 -->   run here where THINWIRE_DATA has the real images
#   <!-- not run: REASON --> left out
# All blocks of one file share one folder, in order, so that a later one may use an earlier one's
# run. There, build/bin/train is a wrapper that stops after a few steps, thinwire is on the PATH,
# photos/ has a few images, and scripts/build.sh takes the example of docs/algorithms.md, which this
# build has compiled, for a new file.
set -euo pipefail
source=$TW_SOURCE build=$TW_BUILD
if grep -q '^SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
  echo "skipped: the commands are run in the builds without sanitizers"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# blocks FILE: writes NUMBER.sh and NUMBER.mark, or NUMBER.cpp, for each block of FILE
blocks() {
  awk '
    /^<!-- (not )?run/ { mark = $0; next }
    /^```(sh|cpp)$/ {
      name = ++number "." substr($0, 4)
      print mark > (number ".mark")
      mark = ""
      next
    }
    /^```/ { name = ""; next }
    name { print > name }
    !name && NF { mark = "" }' "$1"
}

# sandbox: an empty folder with links to the project, for commands that are typed in it
sandbox() {
  mkdir -p "$1"/{bin,build/bin,scripts,sparsify/selectors}
  ln -s "$source"/scripts/* "$1/scripts/"
  ln -s "$source/docs" "$source/configs" "$1/"
  ln -s "$source/scripts/thinwire" "$1/bin/"
  for program in "$build"/bin/*; do
    ln -s "$program" "$1/build/bin/"
  done
  rm "$1/build/bin/train" "$1/scripts/build.sh"
  printf '#!/bin/sh\nexec "%s/bin/train" --max-steps 3 "$@"\n' "$build" >"$1/build/bin/train"
  cat >"$1/scripts/build.sh" <<EOF
#!/bin/sh
diff sparsify/selectors/mine.cpp "$build/tests/examples/algorithms_1.cpp" &&
  sed -i 's,/bin/train",/bin/train_with_examples",' build/bin/train
EOF
  chmod +x "$1/build/bin/train" "$1/scripts/build.sh"
  for class in garden lake; do
    mkdir -p "$1/photos/$class"
    for number in {1..40}; do
      ln -s "$source/tests/data/image/colour.jpg" "$1/photos/$class/$number.jpg"
    done
  done
  if [[ -n ${THINWIRE_DATA:-} ]]; then
    mkdir "$1/data-cache"
    ln -s "$THINWIRE_DATA/cifar-10-batches-bin" "$1/data-cache/"
  fi
}

failed=0 ran=0
for file in "$source"/README.md "$source"/docs/*.md; do
  name=${file#"$source/"}
  name=${name//\//-}  # docs/README.md is docs-README.md
  mkdir "$work/$name.blocks"
  cd "$work/$name.blocks"
  blocks "$file"
  for block in *.cpp; do
    [[ -e $block ]] || continue
    ran=$((ran + 1))
    "${CXX:-c++}" -std=c++20 -fsyntax-only -Wall -Wextra -I"$source" "$block" || failed=1
  done
  sandbox "$work/$name"
  cd "$work/$name"
  for block in $(find "$work/$name.blocks" -name '*.sh' | sort -V); do
    mark=$(cat "${block%.sh}.mark")
    codes=0
    case $mark in
      '<!-- run -->') ;;
      '<!-- run: exit code '*) codes=$(tr -s ' ' <<<"${mark//[!0-9 ]/}") ;;
      '<!-- run: cifar-10 -->')
        if [[ -z ${THINWIRE_DATA:-} ]]; then
          echo "$name: left out without THINWIRE_DATA: $(head -n 1 "$block")"
          continue
        fi
        ;;
      '<!-- not run: '*) continue ;;
      *)
        echo "$name: a block without a mark: $(head -n 1 "$block")"
        failed=1
        continue
        ;;
    esac
    if grep -q mpirun "$block" && ! grep -q TW_WITH_MPI "$build/compile_commands.json"; then
      echo "$name: left out in a build without MPI: $(grep -m 1 mpirun "$block")"
      continue
    fi
    ran=$((ran + 1))
    code=0
    PATH=$PWD/bin:$PATH THINWIRE_BIN=$PWD/build/bin \
      bash -euo pipefail "$block" >log 2>&1 </dev/null || code=$?
    if [[ " $codes " != *" $code "* ]]; then
      printf '%s: this block ends with exit code %s, expected %s:\n' "$name" "$code" "$codes"
      sed 's/^/  /' "$block"
      tail -n 20 log
      failed=1
    fi
  done
done
echo "$ran blocks ran"
((ran > 0)) || failed=1
exit $failed
