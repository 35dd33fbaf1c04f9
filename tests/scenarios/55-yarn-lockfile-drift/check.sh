#!/usr/bin/env bash
node .yarn/releases/yarn-1.22.22.cjs install --frozen-lockfile --non-interactive && node test.js
