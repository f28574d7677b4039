#!/usr/bin/env bash
# Manual pages and completions: every flag that a command's --help shows is in its page and in the
# completions of bash, zsh and fish; values come from the registries; man, mandoc, zsh and fish read
# the files without a complaint, where they are installed.
set -euo pipefail
manual=$TW_BUILD/manual
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export THINWIRE_BIN=$TW_BUILD/bin

# complete_bash WORD...: what bash offers for the last word, a line each
complete_bash() {
  bash -c '. "$0"; COMP_WORDS=(thinwire "$@"); COMP_CWORD=$#; _thinwire
           ((${#COMPREPLY[@]} == 0)) || printf "%s\n" "${COMPREPLY[@]}"' \
    "$manual/thinwire.bash" "$@"
}
# complete_fish WORD...: the same for fish
complete_fish() {
  # shellcheck disable=SC2016
  fish --no-config -c 'source $argv[1]; complete -C "thinwire $argv[2..]"' "$manual/thinwire.fish" \
    "$@" | cut -f 1
}
# complete_zsh WORD...: the same for zsh: a shell in a terminal lists what Tab offers
complete_zsh() {
  python3 tests/scripts/zsh_offers.py "$manual" "thinwire $*"
}

shells=(bash)
for shell in zsh fish; do
  if command -v "$shell" >/dev/null; then shells+=("$shell"); else echo "left out: no $shell"; fi
done

if grep -n '\.py ' "$manual"/*.1; then echo "scripts without the names of commands" && exit 1; fi

# expect WHERE WORD FILE: the file has the line
expect() {
  grep -qxF -- "$2" "$3" && return
  echo "$1: $2 is missing; offered:"
  cat "$3"
  exit 1
}

# flags COMMAND...: those that its --help shows
flags() {
  scripts/thinwire "$@" --help | grep -oE '^ +(-[a-zA-Z], ?)?--[a-z][a-z0-9-]*' |
    grep -oE -- '--[a-z0-9-]+' | sort -u
}

checked=0
# check_flags COMMAND [SUBCOMMAND]
check_flags() {
  local page=$manual/thinwire-$1.1 shell flag
  mapfile -t known < <(flags "$@")
  ((${#known[@]} > 0)) || { echo "no flags of $*"; exit 1; }
  MANWIDTH=100 man -l "$page" 2>/dev/null | col -b >"$work/page" || cp "$page" "$work/page"
  for shell in "${shells[@]}"; do
    "complete_$shell" "$@" -- >"$work/$shell"
  done
  for flag in "${known[@]}"; do
    grep -qE -- "^ *(-[a-zA-Z], )?$flag( |\$)" "$work/page" ||
      { echo "$page: no $flag"; exit 1; }
    for shell in "${shells[@]}"; do
      expect "$shell, thinwire $*" "$flag" "$work/$shell"
    done
    checked=$((checked + 1))
  done
}

mapfile -t commands < <(scripts/thinwire | awk '/^  / { print $1 }')
for command in "${commands[@]}"; do
  [[ -s $manual/thinwire-$command.1 ]] || { echo "no page of $command"; exit 1; }
  for shell in "${shells[@]}"; do
    "complete_$shell" "${command:0:2}" >"$work/offered"
    expect "$shell" "$command" "$work/offered"
  done
  case $command in
    bench) subs=(comm data select step) ;;
    analyze) subs=(select theory) ;;
    race) subs=(run show accuracy) ;;
    get-cifar10) continue ;;
    *)
      check_flags "$command"
      continue
      ;;
  esac
  complete_bash "$command" "" >"$work/offered"
  for sub in "${subs[@]}"; do
    expect "bash, thinwire $command" "$sub" "$work/offered"
    check_flags "$command" "$sub"
  done
done
((checked > 150)) || { echo "only $checked flags checked"; exit 1; }

# values: names of the registries, choices, settings, files
for shell in "${shells[@]}"; do
  "complete_$shell" train --model resnet1 >"$work/offered"
  expect "$shell" resnet18 "$work/offered"
  "complete_$shell" train --precision b >"$work/offered"
  expect "$shell" bf16 "$work/offered"
  "complete_$shell" advise --set powersgd. >"$work/offered"
  expect "$shell" powersgd.rank= "$work/offered"
  "complete_$shell" train --set gaussiank. >"$work/offered"
  expect "$shell" gaussiank.refine=paper "$work/offered"
  "complete_$shell" repro r >"$work/offered"
  expect "$shell" run "$work/offered"
done
complete_bash train --model = resnet1 >"$work/offered"  # bash splits --model=resnet1
expect bash resnet18 "$work/offered"
complete_bash train --set gaussiank.refine = p >"$work/offered"
expect bash paper "$work/offered"
complete_bash train --set gaussiank.refine = >"$work/offered"
expect bash histogram "$work/offered"
complete_bash train --config configs/resnet18 >"$work/offered"
expect bash configs/resnet18-imagenet10.json "$work/offered"
[[ -z $(complete_bash train --epochs "") ]] || { echo "offers something for a number"; exit 1; }

for page in "$manual"/*.1; do
  if command -v man >/dev/null; then
    said=$(MANWIDTH=80 man -l --warnings "$page" 2>&1 >/dev/null) || said+="man fails"
    [[ -z $said ]] || { echo "$page: $said"; exit 1; }
  fi
  if command -v mandoc >/dev/null; then
    # the page has no date: it describes a version
    said=$(mandoc -T lint -W warning "$page" | grep -v 'missing date') || true
    [[ -z $said ]] || { echo "$page: $said"; exit 1; }
  fi
done
# a text that is not a path
grep -qF '\-\-link\fR \fIRATE,LATENCY\fR' "$manual/thinwire-train.1" ||
  { echo "the page of train does not say what --link takes"; exit 1; }
! command -v zsh >/dev/null || zsh -n "$manual/_thinwire"
! command -v fish >/dev/null || fish --no-execute "$manual/thinwire.fish"
echo "$checked flags checked in ${shells[*]}"
