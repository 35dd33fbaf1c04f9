#!/usr/bin/env bash
set -eu
command -v uv >/dev/null || { echo 'uv is not installed'; exit 77; }
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
mkdir -p packages/money
cat > pyproject.toml <<'X'
[project]
name = "shop"
version = "0.1.0"
requires-python = ">=3.8"
dependencies = []
[tool.uv.workspace]
members = ["packages/*"]
[tool.uv.sources]
money = { workspace = true }
X
printf '[project]\nname = "money"\nversion = "1.0.0"\nrequires-python = ">=3.8"\n' > packages/money/pyproject.toml
uv lock -q --offline
sed -i 's/^dependencies = .*/dependencies = ["money"]/' pyproject.toml
