#!/usr/bin/env bash
set -eu
command -v make >/dev/null || { echo 'make is not installed'; exit 77; }
command -v cc >/dev/null || { echo 'cc is not installed'; exit 77; }
mkdir src
cat > configure <<'X'
#!/bin/sh
set -e
printf 'checking for working C compiler... '; command -v "${CC:-cc}"
printf '#define PACKAGE_VERSION "3.1"\n#define HAVE_STDINT_H 1\n' > config.h
echo "config.status: creating config.h"
X
chmod +x configure
cat > src/main.c <<'X'
#include "config.h"
#include <stdio.h>
int main(void) { puts("demo " PACKAGE_VERSION); return 0; }
X
printf 'check: demo\n\t./demo\ndemo: src/main.c\n\t$(CC) -I. -o $@ src/main.c\n' > Makefile
