#!/usr/bin/env bash
set -eu
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
mkdir src build
echo 'def allowed(n): return n < 100' > src/rules.py
cat > compile_rules.py <<'X'
import py_compile, pathlib
pathlib.Path("build").mkdir(exist_ok=True)
for p in pathlib.Path("src").glob("*.py"):
    py_compile.compile(str(p), cfile="build/%s.pyc" % p.stem, doraise=True)
X
cat > run.py <<'X'
import sys; sys.path.insert(0, "build")
import rules
assert rules.allowed(5) and not rules.allowed(500)
print("1 passed, 0 failed")
X
python3 compile_rules.py
printf '\x55\x0d\x0d\x0a' | dd of=build/rules.pyc bs=1 conv=notrunc status=none   # made by Python 3.8, before the upgrade
