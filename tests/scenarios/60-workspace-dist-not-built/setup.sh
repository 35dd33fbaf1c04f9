#!/usr/bin/env bash
set -eu
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
mkdir -p packages/core/src
echo '{"name":"mono","version":"1.0.0","private":true,"workspaces":["packages/*"],"scripts":{"test":"node test.js"}}' > package.json
echo '{"name":"@acme/core","version":"1.0.0","main":"dist/index.js","scripts":{"build":"node build.js"}}' > packages/core/package.json
cat > packages/core/build.js <<'X'
const fs = require('fs');
fs.mkdirSync('dist', { recursive: true });
fs.writeFileSync('dist/index.js', fs.readFileSync('src/index.js', 'utf8').replace(/export const (\w+) =/g, 'exports.$1 ='));
X
echo 'export const cents = (euro) => Math.round(euro * 100);' > packages/core/src/index.js
echo "require('assert').strictEqual(require('@acme/core').cents(1.1), 110); console.log('1 passed, 0 failed')" > test.js
npm install --offline --no-audit --no-fund --silent >/dev/null 2>&1
