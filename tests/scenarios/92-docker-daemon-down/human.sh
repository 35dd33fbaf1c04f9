#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
echo INTEGRATION=off > test.local
