#!/usr/bin/env bash
set -eu
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
mkdir pk && ( cd pk && echo '{"name":"acme-lint","version":"1.0.0","bin":{"acme-lint":"cli.js"}}' > package.json
printf '#!/usr/bin/env node\nconsole.log("acme-lint: 0 problems");\n' > cli.js
npm pack --silent >/dev/null 2>&1 ); mkdir third_party; mv pk/acme-lint-1.0.0.tgz third_party/; rm -rf pk
echo '{"name":"l","version":"1.0.0","private":true,"scripts":{"lint":"acme-lint ."},"devDependencies":{"acme-lint":"file:third_party/acme-lint-1.0.0.tgz"}}' > package.json
npm install --offline --no-audit --no-fund --silent >/dev/null 2>&1
rm -rf node_modules/.bin      # copied by a tool that drops symbolic links
