#!/usr/bin/env bash
exec sh preview.sh
