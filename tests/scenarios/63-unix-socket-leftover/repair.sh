#!/usr/bin/env bash
set -e
rm -f run/app.sock
