#!/usr/bin/env bash
set -e
cargo vendor --locked
