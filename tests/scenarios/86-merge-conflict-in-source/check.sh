#!/usr/bin/env bash
exec python3 -m unittest -q test_price
