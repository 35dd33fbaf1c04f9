#!/usr/bin/env bash
set -eu
command -v make >/dev/null || { echo 'make is not installed'; exit 77; }
command -v cc >/dev/null || { echo 'cc is not installed'; exit 77; }
cat > Makefile <<'X'
test: app
	./app
app: main.o parse.o
	$(CC) -o $@ main.o parse.o
%.o: %.c
	$(CC) -c -o $@ $<
clean:
	rm -f app *.o
.PHONY: test clean
X
echo 'int parse_flag(const char *s) { return s[0] == 45; }' > parse.c
cc -c -o parse.o parse.c
cat > parse.c <<'X'
int parse_flag(const char *s) { return s[0] == 45; }
int parse_level(const char *s) { return s[0] - 48; }
X
printf '#include <stdio.h>\nint parse_level(const char *);\nint main(void) { if (parse_level("3") != 3) return 1; puts("1 passed, 0 failed"); return 0; }\n' > main.c
touch -d '2024-01-05 12:00' parse.c main.c     # unpacked from an archive that keeps its times
touch parse.o
