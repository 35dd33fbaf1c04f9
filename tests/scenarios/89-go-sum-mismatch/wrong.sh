#!/usr/bin/env bash
# a tempting wrong repair: running it must not make the check pass
export GOPROXY="file://$PWD/.goproxy" GOSUMDB=off GOMODCACHE="$PWD/.modcache" GOFLAGS=-modcacherw
go clean -modcache
