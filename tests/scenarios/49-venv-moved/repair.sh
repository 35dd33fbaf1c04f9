#!/usr/bin/env bash
set -e
python3 -m venv --clear .venv && .venv/bin/pip install -q --no-index --find-links wheelhouse -r requirements.txt
