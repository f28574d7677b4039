#!/usr/bin/env bash
# check.sh [--fast]: checks the project's rules. Prints one line per violation; exit code 1 if there
# is any.
#   always          format, include direction, names of registered entries, columns, the budget
#                   (scripts/dev/budget.txt), layout, markers of unfinished work, paths that exist
#                   on one machine only, shell scripts, Python (ruff, mypy), commit subjects
#   without --fast  also builds with warnings as errors; names and bug patterns with clang-tidy
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

areas=(engine layers models data comm sparsify apps tests)
max_columns=100

list() { find "$@" -type f 2>/dev/null | sort; }
mapfile -t sources < <(list "${areas[@]}" \( -name '*.cpp' -o -name '*.h' -o -name '*.cu*' \))
mapfile -t shell < <(
  list scripts tests .ci \( -name '*.sh' -o -path .ci/run -o -path scripts/thinwire \)
)
mapfile -t others < <(
  list scripts configs tests \( -name '*.py' -o -name '*.js' -o -name '*.css' -o -name '*.html' \)
  list CMakeLists.txt apps tests scripts/cmake \( -name CMakeLists.txt -o -name '*.cmake' \)
)
mapfile -t texts < <(
  printf '%s\n' README.md CMakePresets.json .clang-format .clang-tidy .dockerignore .editorconfig \
    .pre-commit-config.yaml
  list docs configs \( -name '*.md' -o -name '*.json' \)
)
code=("${sources[@]}" "${shell[@]}" "${others[@]}")

check_format() {
  clang-format --dry-run "${sources[@]}" 2>&1 |
    sed -n 's/^\(.*:[0-9]*\):[0-9]*: .*-Wclang-format.*/\1: format: run clang-format -i/p' |
    sort -u -t: -k1,1 -k2,2n
}

check_include_direction() {
  scripts/dev/include_graph.py --check
}

# A header that includes a library's header, or is for one device, has the name of that library or
# device in its name or folder. Only .cpp and .cu files and other such headers include it.
check_third_party() {
  local library
  local special='((cuda|libjpeg)[a-z_]*|_(cuda|cpu)|\/(cpu|cuda|mpi|nccl|onednn)\/[a-z_0-9]*)\.h'
  library='(oneapi/)?(dnnl|mpi|cuda|cudnn|cublas|nccl|jpeglib|spng|webp|zlib)[a-z_0-9/]*\.h'
  awk -v special="$special\$" -v library="^#include [<\"]$library" \
    -v inner="^#include \".*$special\"" '
    FILENAME !~ /\.h$/ || FILENAME ~ special { next }
    $0 ~ library {
      printf "%s:%d: include: library header in a public header: %s\n", FILENAME, FNR, $2
    }
    $0 ~ inner {
      printf "%s:%d: include: implementation header in a public header: %s\n", FILENAME, FNR, $2
    }' "${sources[@]}"
}

check_registered_names() {
  scripts/dev/registered_names.py
}

check_columns() {
  awk -v most="$max_columns" 'length($0) > most {
    printf "%s:%d: size: %d columns, at most %d\n", FILENAME, FNR, length($0), most }' "${code[@]}"
}

# prints lines or files by folder; more than both figures of scripts/dev/budget.txt is a violation
check_budget() {
  local unit bound now found folders
  while read -r unit bound now folders; do
    # shellcheck disable=SC2086  # several folders
    found=$(list $folders ! -name '*.pyc' ! -name '*.png' ! -name '*.svg' ! -name '*.jpg' \
      ! -name '*.webp' ! -name '*.xz' |
      if [[ $unit == files ]]; then wc -l; else xargs -r cat | wc -l; fi)
    printf 'budget: %6d %s of %6d: %s\n' "$found" "$unit" "$bound" "$folders" >&2
    ((found <= (bound > now ? bound : now))) ||
      echo "${folders// /,}: budget: $found $unit; at most $((bound > now ? bound : now))"
  done < <(grep '^[a-z]' scripts/dev/budget.txt)
}

check_layout() {
  local allowed=" ${areas[*]} scripts docs configs .ci CMakeLists.txt CMakePresets.json README.md "
  allowed+="LICENSE .clang-format .clang-tidy .editorconfig .gitattributes .gitignore "
  allowed+=".dockerignore .pre-commit-config.yaml pyproject.toml "
  { git ls-files 2>/dev/null || true; } | cut -d/ -f1 | sort -u | while read -r entry; do
    [[ $allowed == *" $entry "* ]] || echo "$entry: layout: no such entry at the top level"
  done
}

check_unfinished() {
  grep -nHwE 'TO[D]O|FIX[M]E|XX[X]' "${code[@]}" "${texts[@]}" 2>/dev/null |
    sed 's/^\([^:]*:[0-9]*\):.*/\1: unfinished: finish it and remove the marker/'
}

check_machine_paths() {
  grep -nHE '\.\.[/]shared|/wor[k]/|/roo[t]/|/tm[p]/[a-z]' "${code[@]}" "${texts[@]}" 2>/dev/null |
    sed -n '/^\.ci\//!s/^\([^:]*:[0-9]*\):.*/\1: path: exists on one machine only/p'
}

check_shell() {
  if ! command -v shellcheck >/dev/null; then
    echo "check: shellcheck is not installed; shell scripts were not checked" >&2
    return 0
  fi
  shellcheck -x -f gcc "${shell[@]}" | sed 's/:\([0-9]*\): [a-z]*: /:\1: shell: /'
}

check_python() {
  if ! command -v ruff >/dev/null; then
    echo "check: ruff is not installed (pip install ruff); Python files were not checked" >&2
    return 0
  fi
  ruff check --quiet --config scripts/ruff.toml --output-format concise scripts configs tests |
    sed -n 's/^\([^:]*:[0-9]*\):[0-9]*: /\1: python: /p'
}

check_types() {
  if ! command -v mypy >/dev/null; then
    echo "check: mypy is not installed (pip install mypy); types were not checked" >&2
    return 0
  fi
  mypy --config-file scripts/mypy.ini --cache-dir build/mypy scripts |
    sed -n 's/^\([^:]*:[0-9]*\): error: /\1: type: /p'
}

check_commits() {
  scripts/dev/check_commit_message.sh --commits
}

check_warnings() {
  local log
  log=$(scripts/build.sh release 2>&1) && return
  grep -E '(warning|error): ' <<<"$log" | sort -u | sed 's/^/build: /'
  grep -qE '(warning|error): ' <<<"$log" || tail -n 5 <<<"$log" | sed 's/^/build: /'
}

# clang-tidy 16: older ones do not know the headers of GCC 12. With OpenMP it refuses lambdas that
# capture structured bindings.
check_tidy() {
  if ! command -v clang-tidy-16 >/dev/null; then
    echo "check: clang-tidy-16 is not installed; names and bug patterns were not checked" >&2
    return 0
  fi
  cmake -G Ninja -S . -B build-tidy -DWITH_CUDA=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null || { echo "tidy: cmake failed"; return 0; }
  sed -n 's/^ *"file": "\(.*\)".*/\1/p' build-tidy/compile_commands.json | grep -v cmake_pch |
    xargs -P "$(nproc)" -n 1 clang-tidy-16 --quiet -p build-tidy --config-file=.clang-tidy \
      --extra-arg=-Wno-unknown-warning-option --extra-arg=-fno-openmp \
      --extra-arg=-Wno-unknown-pragmas --extra-arg=-Wno-missing-braces 2>/dev/null |
    sed -n "s|^$PWD/||; s/: error: /: tidy: /p" | sort -u || true
}

[[ ${1:---fast} == --fast ]] || die "unknown option $1; expected --fast or nothing"
command -v clang-format >/dev/null || die "clang-format is missing; install_deps.sh installs it"

violations=$(
  check_format
  check_include_direction
  check_third_party
  check_registered_names
  check_columns
  check_budget
  check_layout
  check_unfinished
  check_machine_paths
  check_shell
  check_python
  check_types
  check_commits
  if [[ ${1:-} != --fast ]]; then
    check_warnings
    check_tidy
  fi
  true
)
[[ -z $violations ]] && exit 0
printf '%s\n' "$violations"
exit 1
