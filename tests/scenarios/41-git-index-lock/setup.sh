#!/usr/bin/env bash
set -eu
command -v git >/dev/null || { echo 'git is not installed'; exit 77; }
git init -q -b main .; git config user.email dev@example.com; git config user.name Dev; git config core.autocrlf false

echo 'hello' > app.txt
cat > release-check.sh <<'X'
set -e
git add -A .
git diff --cached --check
echo "index ok: $(git ls-files | wc -l) files"
X
git add .; git commit -qm base
echo 'second line' >> app.txt
: > .git/index.lock      # an agent's git was killed in the middle of "git add"
