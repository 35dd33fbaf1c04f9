#!/usr/bin/env bash
set -eu
mkdir -p sdk .sdk-cache
cat > build.sh <<'X'
set -e
h=24333f8a63b6825ea9c5514f83c2829b004d1fee
if ! grep -qs "$h" sdk/licenses/device-sdk-license; then
  echo "FAILURE: Build failed with an exception." >&2
  echo "> Failed to install the following SDK packages as some licences have not been accepted." >&2
  echo "     platforms;device-34 Device SDK Platform 34" >&2
  echo "  To build this project, read and accept the licence agreements: sdkmanager --licenses" >&2
  exit 1
fi
echo "BUILD SUCCESSFUL"
X
