#!/usr/bin/env bash
echo "no automatic repair: dropping the database would lose a person's data" >&2
exit 1
