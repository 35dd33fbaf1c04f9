#!/usr/bin/env bash
ulimit -c 0
exec npm run build
