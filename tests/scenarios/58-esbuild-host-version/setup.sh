#!/usr/bin/env bash
set -eu
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
echo '{"name":"e","version":"1.0.0","private":true,"scripts":{"build":"node build.mjs"},"devDependencies":{"esbuild":"0.21.5"}}' > package.json
echo 'export const n: number = 41 + 1; console.log(n);' > in.ts
cat > build.mjs <<'X'
import * as esbuild from 'esbuild';
await esbuild.build({ entryPoints: ['in.ts'], bundle: true, outfile: 'out.js' });
console.log('built');
X
npm install --no-audit --no-fund --silent >/dev/null 2>&1
p=$(node -p "process.platform + '-' + process.arch")
npm pack --silent "@esbuild/$p@0.21.4" >/dev/null 2>&1
rm -rf "node_modules/@esbuild/$p"; mkdir -p "node_modules/@esbuild/$p"
tar -xzf "esbuild-$p-0.21.4.tgz" -C "node_modules/@esbuild/$p" --strip-components 1; rm -f esbuild-*.tgz
