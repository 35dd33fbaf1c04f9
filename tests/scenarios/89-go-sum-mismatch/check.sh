#!/usr/bin/env bash
export GOPROXY="file://$PWD/.goproxy" GOSUMDB=off GOMODCACHE="$PWD/.modcache" GOFLAGS=-modcacherw
exec go run .
