#!/usr/bin/env bash
git checkout -q release && exec sh test.sh
