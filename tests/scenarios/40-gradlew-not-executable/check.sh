#!/usr/bin/env bash
./gradlew test
