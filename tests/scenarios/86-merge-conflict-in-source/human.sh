#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
printf 'def price(n):\n    base = n * 10\n    return 119 * base * (0.9 if n >= 10 else 1) / 100\n' > price.py && git add price.py && git commit -qm merge
