#!/usr/bin/env bash
exec python3 run.py
