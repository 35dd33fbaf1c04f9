#!/usr/bin/env bash
echo "no automatic repair: a service of the machine has to be started by a person" >&2
exit 1
