#!/usr/bin/env bash
# Commit subjects that break the convention are refused and reported for a branch.
set -euo pipefail
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect accepted|refused MESSAGE
expect() {
  local found=accepted
  printf '%b\n' "$2" >"$work/message"
  "$root/scripts/dev/check_commit_message.sh" "$work/message" >"$work/output" || found=refused
  [[ $found == "$1" ]] || {
    echo "expected $1, got $found: $2"
    failed=1
  }
}

long=$(printf 'x%.0s' {1..70})
expect accepted 'docs: describe the block size\n\nReaders looked for it.'
expect accepted 'sparsify, comm: count bytes once\n\nThe body may have; semicolons. And dots.'
expect accepted 'engine/ops: add negate\n\nThe example needs it.'
expect accepted '# a comment\nscripts: check subjects\n\nOne was wrong.'
expect accepted 'Merge branch w-docs'
expect refused 'Describe the block size\n\nReaders looked for it.'
expect refused 'docs:describe\n\nReaders looked for it.'
expect refused "docs: $long\n\nReaders looked for it."
expect refused 'docs: describe the block size; mend a link\n\nReaders looked for it.'
expect refused 'docs: describe the block size.\n\nReaders looked for it.'
expect refused ''
expect refused 'docs: describe the block size'
expect refused 'docs: describe the block size\n# Please enter the commit message'

# in a repository of its own, --commits sees a subject that got past the hook
cd "$work"
git init -q repository
cd repository
git config user.name tester
git config user.email tester@example.invalid
git config commit.gpgsign false
mkdir -p scripts/dev scripts/lib
cp "$root/scripts/dev/check_commit_message.sh" scripts/dev
cp "$root/scripts/lib/common.sh" scripts/lib
git add .
git commit -qm 'Older commits are not checked.'
scripts/dev/check_commit_message.sh --commits
git commit -q --allow-empty -m 'docs: add nothing' -m 'Nothing is missing.'
scripts/dev/check_commit_message.sh --commits
git commit -q --allow-empty -m 'No area'
if scripts/dev/check_commit_message.sh --commits >/dev/null; then
  echo "--commits did not see a bad subject"
  failed=1
fi
exit $failed
