#!/usr/bin/env bash
set -e
php console config:clear
