#!/usr/bin/env bash
set -e
./configure
