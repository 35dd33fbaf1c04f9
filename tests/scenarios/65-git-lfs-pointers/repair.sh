#!/usr/bin/env bash
set -e
git lfs checkout
