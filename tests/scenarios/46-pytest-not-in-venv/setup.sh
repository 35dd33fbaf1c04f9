#!/usr/bin/env bash
set -eu
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
echo 'pytest==8.3.4' > requirements-dev.txt
python3 -m venv .venv
echo 'def area(a, b): return a * b' > shapes.py
printf 'from shapes import area\n\ndef test_area():\n    assert area(2, 3) == 6\n' > test_shapes.py
