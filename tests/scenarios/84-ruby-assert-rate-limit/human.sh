#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
sed -i 's# / 10##' lib/backoff.rb
