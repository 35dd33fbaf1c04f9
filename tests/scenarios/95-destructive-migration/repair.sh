#!/usr/bin/env bash
echo "no automatic repair: the migration drops data; a person has to export and confirm" >&2
exit 1
