#!/usr/bin/env bash
echo "no automatic repair: code bug: null pointer" >&2
exit 1
