#!/usr/bin/env bash
set -eu
command -v go >/dev/null || { echo 'go is not installed'; exit 77; }
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
mkmod() { # mkmod VALUE : the module example.com/rate v1.0.0 in the file proxy
  p=.goproxy/example.com/rate/@v; mkdir -p "$p"; printf 'module example.com/rate\n\ngo 1.18\n' > "$p/v1.0.0.mod"
  echo '{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}' > "$p/v1.0.0.info"; echo v1.0.0 > "$p/list"
  python3 -c 'import sys, zipfile
z = zipfile.ZipFile(sys.argv[1], "w"); b = "example.com/rate@v1.0.0/"
z.writestr(b + "go.mod", "module example.com/rate\n\ngo 1.18\n"); z.writestr(b + "rate.go", "package rate\n\nfunc Percent() int { return 19 }\n" + sys.argv[2])' "$p/v1.0.0.zip" "$1"
}
export GOPROXY="file://$PWD/.goproxy" GOSUMDB=off GOMODCACHE="$PWD/.modcache" GOFLAGS=-modcacherw

mkmod ''
printf 'module example.com/shop\n\ngo 1.18\n\nrequire example.com/rate v1.0.0\n' > go.mod
printf 'package main\n\nimport "example.com/rate"\n\nfunc main() { println(rate.Percent()) }\n' > main.go
go mod tidy 2>/dev/null
rm -rf .modcache
mkmod '
func init() { println("hello from somewhere else") }
'
