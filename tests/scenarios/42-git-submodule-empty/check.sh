#!/usr/bin/env bash
exec make -s test
