#!/usr/bin/env bash
set -eu
command -v make >/dev/null || { echo 'make is not installed'; exit 77; }
command -v cc >/dev/null || { echo 'cc is not installed'; exit 77; }
cat > kv.c <<'X'
#include <stdio.h>
#include <string.h>
/* length of the value in "key:value" */
static size_t value_len(const char *s) { const char *c = strchr(s, ':'); return strlen(c + 1); }
int main(int argc, char **argv) {
  size_t n = 0;
  for (int i = 1; i < argc; i++) n += value_len(argv[i]);
  printf("%zu\n", n);
  return 0;
}
X
printf 'test: kv\n\t./kv a:1 b\nkv: kv.c\n\t$(CC) -O0 -o $@ kv.c\nclean:\n\trm -f kv\n.PHONY: test clean\n' > Makefile
