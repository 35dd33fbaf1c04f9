#!/usr/bin/env bash
set -e
bundle install --local
