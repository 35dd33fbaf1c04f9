#!/usr/bin/env bash
exec python3 fetch.py
