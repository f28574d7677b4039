#!/usr/bin/env bash
# install_hooks.sh: installs two git hooks in this clone.
#   pre-commit  scripts/check.sh --fast, on the files of the work tree
#   commit-msg  scripts/dev/check_commit_message.sh
# `git commit --no-verify` skips both. Hooks that were not installed by this script are kept.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

mark="# installed by scripts/dev/install_hooks.sh"
hooks=$(git rev-parse --git-path hooks)

# install NAME COMMAND
install_hook() {
  local hook=$hooks/$1
  if [[ -e $hook ]] && ! grep -qF "$mark" "$hook"; then
    die "$hook exists already; remove it, or add this line to it: $2"
  fi
  mkdir -p "$hooks"
  printf '#!/bin/sh\n%s\n%s\n' "$mark" "$2" >"$hook"
  chmod +x "$hook"
}

# shellcheck disable=SC2016  # the hook expands "$1"
install_hook commit-msg 'exec scripts/dev/check_commit_message.sh "$1"'
install_hook pre-commit 'exec scripts/check.sh --fast'
echo "hooks installed in $hooks"
