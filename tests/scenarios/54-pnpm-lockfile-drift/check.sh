#!/usr/bin/env bash
npx --yes pnpm@9.15.0 install --frozen-lockfile && node test.js
