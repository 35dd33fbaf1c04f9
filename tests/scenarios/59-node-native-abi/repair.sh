#!/usr/bin/env bash
set -e
npm rebuild
