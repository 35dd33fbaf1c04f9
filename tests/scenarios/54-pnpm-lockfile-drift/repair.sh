#!/usr/bin/env bash
set -e
npx --yes pnpm@9.15.0 install --no-frozen-lockfile
