#!/usr/bin/env bash
exec sh integration.sh
