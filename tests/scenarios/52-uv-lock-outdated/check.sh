#!/usr/bin/env bash
uv lock --check --offline && echo '1 passed, 0 failed'
