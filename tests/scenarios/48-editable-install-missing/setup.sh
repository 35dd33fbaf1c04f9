#!/usr/bin/env bash
set -eu
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
mkdir -p src/ledger
cat > setup.py <<'X'
from setuptools import setup
setup(name="ledger", version="2.3.0", package_dir={"": "src"}, packages=["ledger"])
X
cat > src/ledger/__init__.py <<'X'
from importlib.metadata import version
__version__ = version("ledger")
X
printf 'import sys\nsys.path.insert(0, "src")\nimport ledger\nassert ledger.__version__ == "2.3.0"\nprint("1 passed, 0 failed")\n' > selftest.py
python3 -m venv .venv
