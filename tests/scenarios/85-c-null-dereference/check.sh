#!/usr/bin/env bash
ulimit -c 0
exec make -s test
