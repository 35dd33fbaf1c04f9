#!/usr/bin/env bash
set -eu
command -v go >/dev/null || { echo 'go is not installed'; exit 77; }
mkdir -p libs/money
printf 'module example.com/shop\n\ngo 1.18\n\nreplace example.com/money => ./libs/money\n' > go.mod
printf 'module example.com/money\n\ngo 1.18\n' > libs/money/go.mod
printf 'package money\n\nfunc Cents(e int) int { return e * 100 }\n' > libs/money/money.go
printf 'package main\n\nimport "example.com/money"\n\nfunc main() {\n\tif money.Cents(2) != 200 {\n\t\tpanic("cents")\n\t}\n\tprintln("1 passed, 0 failed")\n}\n' > main.go
( cd libs/money && go build ./... )
