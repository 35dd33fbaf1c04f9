#!/usr/bin/env bash
set -e
go mod vendor
