#!/usr/bin/env bash
set -e
chmod +x gradlew
