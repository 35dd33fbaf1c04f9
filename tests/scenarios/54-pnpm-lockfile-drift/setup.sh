#!/usr/bin/env bash
set -eu
command -v npx >/dev/null || { echo 'npx is not installed'; exit 77; }
command -v node >/dev/null || { echo 'node is not installed'; exit 77; }
echo '{"name":"p","version":"1.0.0","private":true,"dependencies":{"is-number":"7.0.0"}}' > package.json
npx --yes pnpm@9.15.0 install --silent --lockfile-only >/dev/null 2>&1
echo '{"name":"p","version":"1.0.0","private":true,"dependencies":{"is-number":"7.0.0","left-pad":"1.3.0"}}' > package.json
echo "require('assert').strictEqual(require('left-pad')('5', 3, '0'), '005'); console.log('1 passed, 0 failed')" > test.js
