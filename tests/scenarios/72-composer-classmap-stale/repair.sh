#!/usr/bin/env bash
set -e
composer dump-autoload --no-interaction
