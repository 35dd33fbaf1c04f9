#!/usr/bin/env bash
exec .venv/bin/python selftest.py
