#!/usr/bin/env bash
set -eu
command -v git >/dev/null || { echo 'git is not installed'; exit 77; }
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
git init -q -b main .; git config user.email dev@example.com; git config user.name Dev; git config core.autocrlf false

mk() { printf '{\n  "name": "c",\n  "version": "1.0.0",\n  "private": true,\n  "config": {\n    "api": "%s"\n  },\n  "scripts": {\n    "test": "node test.js"\n  }\n}\n' "$1" > package.json; }
mk v1; echo "require('assert').strictEqual(require('./package.json').config.api, 'v3'); console.log('1 passed, 0 failed')" > test.js
git add .; git commit -qm base
git checkout -q -b theirs; mk v3; git commit -qam v3
git checkout -q main; mk v2; git commit -qam v2
git merge theirs >/dev/null 2>&1 || true
grep -q '>>>>>>>' package.json
