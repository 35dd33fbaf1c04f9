#!/usr/bin/env bash
set -eu
command -v go >/dev/null || { echo 'go is not installed'; exit 77; }
mkdir -p libs/money libs/units
for m in money units; do printf 'module example.com/%s\n\ngo 1.18\n' $m > libs/$m/go.mod; printf 'package %s\n\nfunc N() int { return 7 }\n' $m > libs/$m/x.go; done
printf 'module example.com/shop\n\ngo 1.18\n\nrequire example.com/money v0.0.0\n\nreplace example.com/money => ./libs/money\n' > go.mod
printf 'package main\n\nimport "example.com/money"\n\nfunc main() { println(money.N()) }\n' > main.go
go mod vendor
printf 'module example.com/shop\n\ngo 1.18\n\nrequire (\n\texample.com/money v0.0.0\n\texample.com/units v0.0.0\n)\n\nreplace example.com/money => ./libs/money\n\nreplace example.com/units => ./libs/units\n' > go.mod
printf 'package main\n\nimport (\n\t"example.com/money"\n\t"example.com/units"\n)\n\nfunc main() { println(money.N() + units.N()) }\n' > main.go
