#!/usr/bin/env bash
set -eu
command -v git >/dev/null || { echo 'git is not installed'; exit 77; }
git init -q -b main .; git config user.email dev@example.com; git config user.name Dev; git config core.autocrlf false

echo app > app.txt; git add .; git commit -qm base
git checkout -q -b release; echo '# Release notes' > NOTES.md
cat > test.sh <<'X'
grep -rqs 'call the customer back' --include='*.md' . || { echo "error: Anna's notes are lost" >&2; exit 1; }
echo "1 passed, 0 failed"
X
git add .; git commit -qm release; git checkout -q main
printf 'Anna: call the customer back on Monday\n' > NOTES.md
