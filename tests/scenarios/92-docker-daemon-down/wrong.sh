#!/usr/bin/env bash
# a tempting wrong repair: running it must not make the check pass
mkdir -p run && rm -f run/docker.sock
