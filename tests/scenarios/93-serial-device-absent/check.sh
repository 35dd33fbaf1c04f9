#!/usr/bin/env bash
exec python3 scale.py
