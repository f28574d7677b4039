#!/usr/bin/env bash
# scripts/cmake/stamp.cmake: the commit, the differences from it, the date; a file that is only
# written when they change; archives and folders without git.
set -euo pipefail
stamp=$PWD/scripts/cmake/stamp.cmake
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SOURCE_DATE_EPOCH
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_DATE=2020-01-02T03:04:05Z
export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org

# stamped [FOLDER]: what is written for a source folder
stamped() {
  cmake -D source="${1:-$work/source}" -D output="$work/stamp.cpp" -D git="$(command -v git)" \
    -P "$stamp"
  sed -n 's/.*kStamp{"\(.*\)", "\(.*\)"};/\1 \2/p' "$work/stamp.cpp"
}
expect() {
  [[ $1 == "$2" ]] || { echo "expected $2; got $1" && exit 1; }
}

mkdir -p "$work/source/"{engine,docs,scripts/cmake}
cd "$work/source"
cp "$OLDPWD/scripts/cmake/commit.txt" scripts/cmake
cp "$OLDPWD/.gitattributes" .
echo 'int a;' >engine/a.cpp
echo text >docs/a.md
git init -q
git add .
git commit -qm first
commit=$(git rev-parse --short HEAD)
expect "$(stamped)" "$commit 2020-01-02"
touch -d '1 hour ago' "$work/stamp.cpp"
written=$(stat -c %Y "$work/stamp.cpp")
expect "$(stamped)" "$commit 2020-01-02"
expect "$(stat -c %Y "$work/stamp.cpp")" "$written"  # nothing is compiled or linked again
expect "$(SOURCE_DATE_EPOCH=86400 stamped)" "$commit 1970-01-02"

# only files that the programs are built from count, those that git does not know among them
echo more >>docs/a.md
touch docs/b.md
expect "$(stamped)" "$commit 2020-01-02"
echo 'int b[];' >>engine/a.cpp
first=$(stamped)
[[ $first =~ ^$commit-dirty-[0-9a-f]{12}\ 2020-01-02$ ]] || { echo "$first" && exit 1; }
git add engine/a.cpp  # staged is no commit
expect "$(stamped)" "$first"
touch 'engine/b; c.cpp'
second=$(stamped)
echo 'int c;' >'engine/b; c.cpp'
third=$(stamped)
[[ $first != "$second" && $second != "$third" && $third == "$commit-dirty-"* ]] ||
  { echo "$first, $second, $third" && exit 1; }
echo '*c.cpp' >.gitignore
expect "$(stamped)" "$first"

# an archive knows its commit, a plain copy does not, also not below another repository
mkdir -p archive copy
git archive HEAD | tar -x -C archive
expect "$(stamped "$work/source/archive")" "$commit 2020-01-02"
cp -r engine scripts copy
expect "$(stamped "$work/source/copy")" "unknown unknown"
git commit -qm second
git update-index -q --refresh
[[ $(stamped) != "$commit "* ]] || { echo "the commit before" && exit 1; }
