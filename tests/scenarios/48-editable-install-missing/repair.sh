#!/usr/bin/env bash
set -e
.venv/bin/pip install -q -e .
