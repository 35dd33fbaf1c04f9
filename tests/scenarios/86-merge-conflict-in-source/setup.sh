#!/usr/bin/env bash
set -eu
command -v git >/dev/null || { echo 'git is not installed'; exit 77; }
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
git init -q -b main .; git config user.email dev@example.com; git config user.name Dev; git config core.autocrlf false

printf 'def price(n):\n    base = n * 10\n    return base\n' > price.py
cat > test_price.py <<'X'
import unittest
from price import price

class T(unittest.TestCase):
    def test_discount(self): self.assertEqual(price(10), 119 * 10 * 10 * 0.9 / 100)
    def test_plain(self): self.assertEqual(price(1), 119 * 10 / 100)
X
printf '__pycache__\n' > .gitignore
git add .; git commit -qm base
git checkout -q -b tax; printf 'def price(n):\n    base = n * 10\n    return 119 * base / 100\n' > price.py; git commit -qam tax
git checkout -q main; printf 'def price(n):\n    base = n * 10\n    return base * (0.9 if n >= 10 else 1)\n' > price.py; git commit -qam discount
git merge tax >/dev/null 2>&1 || true
grep -q '<<<<<<<' price.py
