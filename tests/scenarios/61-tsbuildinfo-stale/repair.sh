#!/usr/bin/env bash
set -e
rm -f .cache/tsconfig.tsbuildinfo
