#!/usr/bin/env bash
exec sh sign-test.sh
