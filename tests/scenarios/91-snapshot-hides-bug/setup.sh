#!/usr/bin/env bash
set -eu
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
mkdir __snapshots__
echo '{"name":"inv","version":"1.0.0","private":true,"scripts":{"test":"node run-tests.js"}}' > package.json
cat > invoice.js <<'X'
exports.lines = [{ text: 'Chair', cents: 4900 }, { text: 'Table', cents: 12900 }];
exports.render = () => {
  let sum = 0;
  const out = exports.lines.map((l) => { sum = l.cents; return l.text + ' ' + (l.cents / 100).toFixed(2); });
  return out.concat('Total ' + (sum / 100).toFixed(2)).join('\n');
};
X
printf 'Chair 49.00\nTable 129.00\nTotal 178.00' > __snapshots__/invoice.snap
cat > run-tests.js <<'X'
const fs = require('fs'), inv = require('./invoice'), snap = '__snapshots__/invoice.snap';
const got = inv.render(); let failed = 0;
if (process.argv.includes('-u')) fs.writeFileSync(snap, got);
const want = fs.readFileSync(snap, 'utf8');
if (got === want) console.log('✓ renders the invoice');
else { failed++; console.log('✕ renders the invoice\n    - Snapshot\n' + want.replace(/^/gm, '    - ') + '\n    + Received\n' + got.replace(/^/gm, '    + ') + '\n › 1 snapshot failed. Inspect your code changes or run `npm test -- -u` to update them.'); }
const total = inv.lines.reduce((s, l) => s + l.cents, 0);
if (got.endsWith('Total ' + (total / 100).toFixed(2))) console.log('✓ total is the sum of the lines');
else { failed++; console.log('✕ total is the sum of the lines'); }
console.log(`Tests: ${failed} failed, ${2 - failed} passed`);
process.exit(failed ? 1 : 0);
X
