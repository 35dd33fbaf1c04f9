#!/usr/bin/env bash
set -e
rm -f .cache/http-cache.db
