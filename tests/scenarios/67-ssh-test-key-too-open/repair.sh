#!/usr/bin/env bash
set -e
chmod 600 test/keys/ci_ed25519
