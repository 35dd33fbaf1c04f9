#!/usr/bin/env bash
set -e
node .yarn/releases/yarn-1.22.22.cjs install --non-interactive
