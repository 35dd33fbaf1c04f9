#!/usr/bin/env bash
set -eu
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
echo '{"name":"b","version":"1.0.0","private":true,"scripts":{"test":"npm ls --depth=0 && node test.js"},"dependencies":{"is-number":"^7.0.0"}}' > package.json
echo "require('assert')(require('is-number')('5')); console.log('1 passed, 0 failed')" > test.js
npm install --no-audit --no-fund --silent >/dev/null 2>&1
npm install --no-audit --no-fund --silent --no-save is-number@6.0.0 >/dev/null 2>&1     # the other branch's
