#!/usr/bin/env bash
set -e
rm -rf build/classes && javac -d build/classes src/app/Main.java
