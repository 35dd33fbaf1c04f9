#!/usr/bin/env bash
set -e
perl Makefile.PL && make
