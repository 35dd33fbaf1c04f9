#!/usr/bin/env bash
set -e
go mod tidy
