#!/usr/bin/env bash
set -e
sh tests/certs/regenerate.sh
