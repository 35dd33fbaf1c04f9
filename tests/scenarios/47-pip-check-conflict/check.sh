#!/usr/bin/env bash
.venv/bin/pip check && .venv/bin/python app.py
