#!/usr/bin/env bash
.venv/bin/greet --self-test
