#!/usr/bin/env bash
export PYTHONTZPATH=""      # as in the slim image: no /usr/share/zoneinfo
exec .venv/bin/python -m unittest -q test_zone
