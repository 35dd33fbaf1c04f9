#!/usr/bin/env bash
# a tempting wrong repair: running it must not make the check pass
npm install --offline --no-audit --no-fund
