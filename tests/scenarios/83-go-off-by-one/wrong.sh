#!/usr/bin/env bash
# a tempting wrong repair: running it must not make the check pass
go clean -testcache
go mod tidy
