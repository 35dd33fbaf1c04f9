#!/usr/bin/env bash
set -e
cargo update --workspace --offline
