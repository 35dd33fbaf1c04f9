#!/usr/bin/env bash
set -e
rm -rf build
