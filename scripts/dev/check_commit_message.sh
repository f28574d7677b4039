#!/usr/bin/env bash
# check_commit_message.sh FILE: checks the commit message in FILE (the commit-msg hook calls this).
# check_commit_message.sh --commits: checks the commits made after this script was added, the
#   latest 20 at most.
# A subject is `area: imperative verb ...`: one topic (no `;`), at most 72 characters, no full stop
# at the end. The hook also requires a body, which gives the reason. Prints one line per violation;
# exit code 1 if there is any.
# shellcheck source=scripts/lib/common.sh
message=$([[ -f ${1:-} ]] && realpath "$1")
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

most=72

# check_subject NAME SUBJECT: prints what is wrong, each line beginning with NAME
check_subject() {
  local name=$1 subject=$2
  case $subject in "Merge "* | "Revert "* | "fixup! "* | "squash! "*) return ;; esac
  [[ $subject =~ ^[a-z0-9_/.-]+(,\ ?[a-z0-9_/.-]+)*:\ [^\ ] ]] ||
    echo "$name: commit: \"$subject\" does not begin with \"area: \", as in \"docs: add a tour\""
  ((${#subject} <= most)) ||
    echo "$name: commit: subject has ${#subject} characters, at most $most; put reasons in the body"
  [[ $subject != *';'* ]] ||
    echo "$name: commit: subject has a \";\": make one commit per topic"
  [[ $subject != *. ]] ||
    echo "$name: commit: subject ends with a full stop"
}

# check_body TEXT: a message has a body, unless git wrote the message
check_body() {
  case $1 in "Merge "* | "Revert "* | "fixup! "* | "squash! "*) return ;; esac
  (($(grep -c . <<<"$1") >= 2)) ||
    echo "message: commit: no body; give the reason after an empty line"
}

check_commits() {
  local added name subject
  added=$(git log --diff-filter=A --format=%H -- "scripts/dev/$(basename "$0")" 2>/dev/null |
    tail -n 1)
  [[ -n $added ]] || return 0
  git log --no-merges --ancestry-path -n 20 --format='%h %s' "$added..HEAD" |
    while read -r name subject; do check_subject "$name" "$subject"; done
}

case ${1:-} in
  --commits) violations=$(check_commits) ;;
  *)
    [[ -n $message ]] || die "usage: check_commit_message.sh FILE | --commits"
    text=$(sed '/^# -* >8/,$d; /^#/d' "$message")
    violations=$(
      check_subject "message" "$(sed -n '/./{p;q}' <<<"$text")"
      check_body "$text"
    )
    ;;
esac
[[ -z $violations ]] && exit 0
printf '%s\n' "$violations"
exit 1
