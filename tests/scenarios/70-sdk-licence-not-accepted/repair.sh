#!/usr/bin/env bash
echo "no automatic repair: a licence can only be accepted by a person" >&2
exit 1
