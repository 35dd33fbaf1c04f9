#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
sed -i 's/sum = l.cents/sum += l.cents/' invoice.js
