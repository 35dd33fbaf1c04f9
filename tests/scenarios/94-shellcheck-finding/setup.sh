#!/usr/bin/env bash
set -eu
command -v shellcheck >/dev/null || { echo 'shellcheck is not installed'; exit 77; }
mkdir scripts
printf '#!/bin/sh\nset -e\nDEST=$1\nrm -rf $DEST/*\nmkdir -p "$DEST"\ncp README "$DEST/"\n' > scripts/deploy.sh
echo hello > README
