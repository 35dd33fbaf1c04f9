#!/usr/bin/env bash
exec sh version.sh
