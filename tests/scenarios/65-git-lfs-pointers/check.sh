#!/usr/bin/env bash
exec python3 predict.py
