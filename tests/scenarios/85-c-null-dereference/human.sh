#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
sed -i 's/return strlen(c + 1)/return c ? strlen(c + 1) : 0/' kv.c
