#!/usr/bin/env bash
# a tempting wrong repair: running it must not make the check pass
python3 migrate.py --confirm-drop
