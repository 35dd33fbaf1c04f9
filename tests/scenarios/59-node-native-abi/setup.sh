#!/usr/bin/env bash
set -eu
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
command -v cc >/dev/null || { echo 'cc is not installed'; exit 77; }
mkdir pk && cd pk
echo '{"name":"native-sum","version":"1.0.0","main":"index.js","scripts":{"install":"node build.js"},"files":["*.c","*.js"]}' > package.json
cat > addon.c <<'X'
/* the registration record of an addon, without the headers */
struct mod { int version; unsigned flags; void *dso; const char *file; void (*reg)(void *, void *, void *); void *ctx; const char *name; void *priv; void *link; };
extern void node_module_register(void *);
static void init(void *e, void *m, void *p) { (void)e; (void)m; (void)p; }
static struct mod m = { NMV, 0, 0, __FILE__, init, 0, "addon", 0, 0 };
__attribute__((constructor)) static void reg(void) { node_module_register(&m); }
X
cat > build.js <<'X'
const { execFileSync } = require('child_process');
execFileSync('cc', ['-shared', '-fPIC', '-DNMV=' + (process.env.NMV || process.versions.modules), '-o', 'addon.node', 'addon.c'], { stdio: 'inherit' });
X
printf "require('./addon.node');\nmodule.exports = (a, b) => a + b;\n" > index.js
npm pack --silent >/dev/null 2>&1; cd ..; mkdir third_party; mv pk/native-sum-1.0.0.tgz third_party/; rm -rf pk
echo '{"name":"n","version":"1.0.0","private":true,"scripts":{"test":"node test.js"},"dependencies":{"native-sum":"file:third_party/native-sum-1.0.0.tgz"}}' > package.json
echo "require('assert').strictEqual(require('native-sum')(2, 3), 5); console.log('1 passed, 0 failed')" > test.js
NMV=93 npm install --offline --no-audit --no-fund --silent >/dev/null 2>&1      # installed under Node 16
[ -f node_modules/native-sum/addon.node ] || ( cd node_modules/native-sum && NMV=93 node build.js )
