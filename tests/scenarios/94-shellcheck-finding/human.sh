#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
sed -i 's#^rm -rf .*#rm -rf "${DEST:?}"/*#' scripts/deploy.sh
