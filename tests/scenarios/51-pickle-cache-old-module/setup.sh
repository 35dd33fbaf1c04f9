#!/usr/bin/env bash
set -eu
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
mkdir -p catalog .cache
: > catalog/__init__.py
printf 'class Item:\n    def __init__(self, n): self.n = n\n' > catalog/entities.py
cat > load.py <<'X'
import os, pickle
from catalog.models import Item
CACHE = ".cache/catalog.pickle"
def load():
    if os.path.exists(CACHE):
        with open(CACHE, "rb") as f: return pickle.load(f)
    items = [Item(i) for i in range(3)]
    os.makedirs(".cache", exist_ok=True)
    with open(CACHE, "wb") as f: pickle.dump(items, f)
    return items
assert [i.n for i in load()] == [0, 1, 2]
print("1 passed, 0 failed")
X
python3 -c 'import pickle; from catalog.entities import Item; pickle.dump([Item(i) for i in range(3)], open(".cache/catalog.pickle", "wb"))'
mv catalog/entities.py catalog/models.py; rm -rf catalog/__pycache__
