#!/usr/bin/env bash
exec java -cp build/classes app.Main
