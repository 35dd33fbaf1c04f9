#!/usr/bin/env bash
set -e
.venv/bin/pip install -q --no-index --find-links wheelhouse -r requirements.txt
