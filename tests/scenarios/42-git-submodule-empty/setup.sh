#!/usr/bin/env bash
set -eu
command -v git >/dev/null || { echo 'git is not installed'; exit 77; }
command -v make >/dev/null || { echo 'make is not installed'; exit 77; }
command -v gcc >/dev/null || { echo 'gcc is not installed'; exit 77; }
mkdir .up && cd .up
git init -q -b main .; git config user.email dev@example.com; git config user.name Dev; git config core.autocrlf false

cat > ring.h <<'X'
#ifndef RING_H
#define RING_H
static inline int ring_next(int i, int n) { return (i + 1) % n; }
#endif
X
git add .; git commit -qm ring; cd ..
git init -q -b main .; git config user.email dev@example.com; git config user.name Dev; git config core.autocrlf false

git -c protocol.file.allow=always submodule --quiet add "$PWD/.up" vendor/ring
git config -f .gitmodules submodule.vendor/ring.url https://git.example.com/libs/ring.git
cat > main.c <<'X'
#include <stdio.h>
#include "ring.h"
int main(void) { if (ring_next(3, 4) != 0) return 1; puts("1 passed, 0 failed"); return 0; }
X
printf 'test: app\n\t./app\napp: main.c\n\t$(CC) -Ivendor/ring -o $@ main.c\n' > Makefile
printf 'app\n.up\n' > .gitignore
git add .; git commit -qm base
git submodule --quiet deinit -f vendor/ring; rm -rf .up
