#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
sed -i 's/biling/billing/' src/com/acme/app/Main.java
