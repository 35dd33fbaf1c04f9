#!/usr/bin/env bash
set -e
.venv/bin/pip install -q -r requirements-dev.txt
