#!/usr/bin/env bash
set -eu
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
mkdir .cache
cat > fetch.py <<'X'
import os, sqlite3
os.makedirs(".cache", exist_ok=True)
db = sqlite3.connect(".cache/http-cache.db")
db.execute("pragma page_size = 4096")
db.execute("pragma max_page_count = 256")           # cache quota: 1 MiB
db.execute("create table if not exists responses(url text, body blob)")
db.execute("insert into responses values (?, ?)", ("https://example.com/a", b"x" * 8192))
db.commit()
print("1 passed, 0 failed")
X
python3 - <<'X'
import sqlite3
db = sqlite3.connect(".cache/http-cache.db"); db.execute("pragma page_size = 4096"); db.execute("pragma max_page_count = 256")
db.execute("create table responses(url text, body blob)"); db.commit()
n = 0
try:
    while True:
        db.execute("insert into responses values (?, ?)", ("https://example.com/%d" % n, b"y" * 3500)); db.commit(); n += 1
except sqlite3.OperationalError: pass
X
