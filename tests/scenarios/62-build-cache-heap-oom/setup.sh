#!/usr/bin/env bash
set -eu
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
command -v node >/dev/null || { echo 'node is not installed'; exit 77; }
mkdir .cache
echo '{"name":"m","version":"1.0.0","private":true,"scripts":{"build":"node --max-old-space-size=48 build.js"}}' > package.json
cat > build.js <<'X'
const fs = require('fs');
let graph = {};
// persistent cache: every build adds its modules, nothing is ever evicted
if (fs.existsSync('.cache/graph.json')) graph = JSON.parse(fs.readFileSync('.cache/graph.json', 'utf8'));
graph['src/index.js@' + fs.statSync('build.js').size] = { deps: [] };
fs.mkdirSync('.cache', { recursive: true });
fs.writeFileSync('.cache/graph.json', JSON.stringify(graph));
console.log('built, ' + Object.keys(graph).length + ' modules in cache');
X
node -e "
const o = {}; for (let i = 0; i < 200000; i++) o['src/m' + i + '.js@' + (i * 7919).toString(16)] = { deps: ['a' + i, 'b' + i, 'c' + i] };
require('fs').writeFileSync('.cache/graph.json', JSON.stringify(o));"
