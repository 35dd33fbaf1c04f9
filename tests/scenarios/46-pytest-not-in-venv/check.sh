#!/usr/bin/env bash
exec .venv/bin/python -m pytest -q -p no:cacheprovider
