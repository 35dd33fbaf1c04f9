#!/usr/bin/env bash
echo "no automatic repair: a merge conflict needs a decision; taking one side loses the other" >&2
exit 1
