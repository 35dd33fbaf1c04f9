#!/usr/bin/env bash
echo "no automatic repair: git clean or checkout -f would throw a person's notes away" >&2
exit 1
