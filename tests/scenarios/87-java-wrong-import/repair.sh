#!/usr/bin/env bash
echo "no automatic repair: a typo in the source, no dependency is missing" >&2
exit 1
