#!/usr/bin/env bash
exec sh release-check.sh
