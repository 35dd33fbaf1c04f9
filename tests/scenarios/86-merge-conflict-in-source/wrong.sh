#!/usr/bin/env bash
# a tempting wrong repair: running it must not make the check pass
git checkout -q --theirs price.py
