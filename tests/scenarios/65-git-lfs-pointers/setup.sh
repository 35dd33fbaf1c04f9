#!/usr/bin/env bash
set -eu
command -v git >/dev/null || { echo 'git is not installed'; exit 77; }
command -v git-lfs >/dev/null || { echo 'git-lfs is not installed'; exit 77; }
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
git init -q -b main .; git config user.email dev@example.com; git config user.name Dev; git config core.autocrlf false

git lfs install --local >/dev/null
git lfs track '*.bin' >/dev/null
mkdir model
python3 -c 'open("model/weights.bin", "wb").write(b"WGT1" + bytes(range(256)) * 8)'
cat > predict.py <<'X'
import sys
b = open("model/weights.bin", "rb").read()
if b[:4] != b"WGT1":
    sys.exit("ValueError: model/weights.bin: bad header %r, expected b'WGT1'" % b[:24])
print("1 passed, 0 failed")
X
git add .; git commit -qm model
oid=$(git show HEAD:model/weights.bin); printf '%s\n' "$oid" > model/weights.bin      # not smudged
git update-index --refresh >/dev/null 2>&1 || true
