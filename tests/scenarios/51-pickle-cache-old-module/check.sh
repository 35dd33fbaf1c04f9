#!/usr/bin/env bash
exec python3 load.py
