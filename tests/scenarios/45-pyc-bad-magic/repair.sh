#!/usr/bin/env bash
set -e
rm -rf build && python3 compile_rules.py
