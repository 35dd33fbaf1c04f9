#!/usr/bin/env bash
set -eu
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
command -v node >/dev/null || { echo 'node is not installed'; exit 77; }
mkdir -p .yarn/releases
npm pack --silent yarn@1.22.22 >/dev/null 2>&1
tar -xzf yarn-1.22.22.tgz; cp package/lib/cli.js .yarn/releases/yarn-1.22.22.cjs; rm -rf package yarn-1.22.22.tgz
echo '{"name":"y","version":"1.0.0","private":true,"license":"MIT","dependencies":{"is-number":"7.0.0"}}' > package.json
node .yarn/releases/yarn-1.22.22.cjs install --silent --non-interactive >/dev/null 2>&1
rm -rf node_modules
echo '{"name":"y","version":"1.0.0","private":true,"license":"MIT","dependencies":{"is-number":"7.0.0","left-pad":"1.3.0"}}' > package.json
echo "require('assert').strictEqual(require('left-pad')('5', 3, '0'), '005'); console.log('1 passed, 0 failed')" > test.js
