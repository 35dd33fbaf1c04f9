#!/usr/bin/env bash
set -eu
command -v npm >/dev/null || { echo 'npm is not installed'; exit 77; }
echo '{"name":"t","version":"1.0.0","private":true,"scripts":{"test":"tsc -p . && node dist/test.js"},"devDependencies":{"typescript":"5.4.5"}}' > package.json
echo '{"compilerOptions":{"outDir":"dist","rootDir":"src","target":"es2020","module":"commonjs","strict":true,"types":[],"incremental":true,"tsBuildInfoFile":".cache/tsconfig.tsbuildinfo"},"include":["src"]}' > tsconfig.json
mkdir src
echo 'export const add = (a: number, b: number): number => a + b;' > src/add.ts
printf 'import { add } from "./add";\nif (add(2, 3) !== 5) throw new Error("add");\ndeclare const console: { log(s: string): void };\nconsole.log("1 passed, 0 failed");\n' > src/test.ts
npm install --no-audit --no-fund --silent >/dev/null 2>&1
npx tsc -p .
rm -rf dist
