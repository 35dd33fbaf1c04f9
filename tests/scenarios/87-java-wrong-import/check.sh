#!/usr/bin/env bash
set -e
mkdir -p out
javac -d out src/com/acme/*/*.java
java -cp out com.acme.app.Main
