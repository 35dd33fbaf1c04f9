#!/usr/bin/env bash
exec sh ci.sh
