#!/usr/bin/env bash
exec python3 server.py
