#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
mkmod() { # mkmod VALUE : the module example.com/rate v1.0.0 in the file proxy
  p=.goproxy/example.com/rate/@v; mkdir -p "$p"; printf 'module example.com/rate\n\ngo 1.18\n' > "$p/v1.0.0.mod"
  echo '{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}' > "$p/v1.0.0.info"; echo v1.0.0 > "$p/list"
  python3 -c 'import sys, zipfile
z = zipfile.ZipFile(sys.argv[1], "w"); b = "example.com/rate@v1.0.0/"
z.writestr(b + "go.mod", "module example.com/rate\n\ngo 1.18\n"); z.writestr(b + "rate.go", "package rate\n\nfunc Percent() int { return 19 }\n" + sys.argv[2])' "$p/v1.0.0.zip" "$1"
}
mkmod ''      # the publisher put the genuine module back
