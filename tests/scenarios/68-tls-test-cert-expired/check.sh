#!/usr/bin/env bash
exec node tests/tls.test.js
