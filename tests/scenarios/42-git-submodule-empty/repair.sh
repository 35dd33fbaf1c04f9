#!/usr/bin/env bash
set -e
git submodule update --init
