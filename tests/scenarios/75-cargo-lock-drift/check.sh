#!/usr/bin/env bash
exec cargo run --locked --offline -q
