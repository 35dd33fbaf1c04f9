#!/usr/bin/env bash
exec go run .
