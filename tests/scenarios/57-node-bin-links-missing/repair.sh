#!/usr/bin/env bash
set -e
npm ci --no-audit --no-fund
