#!/usr/bin/env bash
set -eu
command -v node >/dev/null || { echo 'node is not installed'; exit 77; }
mkdir config
echo '{ "site_name": "Example", "retries": 3 }' > config/site.example.json
echo '{ "site_name": "Acme North", "retries": 100 }' > config/site.json
cat > app.js <<'X'
const c = JSON.parse(require('fs').readFileSync('config/site.json', 'utf8'));
if (!(c.retries >= 1 && c.retries <= 10)) { console.error(`ConfigError: config/site.json: retries must be between 1 and 10, got ${c.retries} (see config/site.example.json)`); process.exit(78); }
if (c.site_name === 'Example') { console.error('ConfigError: config/site.json: site_name is still the one of the example'); process.exit(78); }
console.log('1 passed, 0 failed');
X
