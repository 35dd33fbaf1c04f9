#!/usr/bin/env bash
exec sh build.sh
