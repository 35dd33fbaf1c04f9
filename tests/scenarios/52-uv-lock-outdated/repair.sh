#!/usr/bin/env bash
set -e
uv lock
