#!/usr/bin/env bash
set -e
npm run build --workspaces --if-present
