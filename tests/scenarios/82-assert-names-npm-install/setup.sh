#!/usr/bin/env bash
set -eu
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
echo '{"name":"hint","version":"1.0.0","private":true,"scripts":{"test":"node test.js"}}' > package.json
cat > hint.js <<'X'
// advice for a failed command
module.exports = (text) => {
  if (/ENOENT.*node_modules/.test(text)) return 'npm install';
  return null;
};
X
cat > test.js <<'X'
const hint = require('./hint');
const assert = require('assert');
assert.strictEqual(hint("Error: Cannot find module 'left-pad'"), 'npm install', "advice for \"Cannot find module 'left-pad'\" (ENOENT: no such file or directory, open 'node_modules/left-pad/package.json'): expected 'run npm install'");
console.log('1 passed, 0 failed');
X
