#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
git checkout -q --theirs package.json && git add package.json && git commit -qm merge
