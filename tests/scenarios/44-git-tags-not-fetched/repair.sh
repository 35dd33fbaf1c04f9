#!/usr/bin/env bash
set -e
git fetch --quiet --tags --unshallow
