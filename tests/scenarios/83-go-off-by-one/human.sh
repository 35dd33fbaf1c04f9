#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
sed -i -e 's/hi >= len(items)/hi > len(items)/' -e 's/hi = len(items) - 1/hi = len(items)/' page.go
