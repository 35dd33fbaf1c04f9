#!/usr/bin/env bash
set -e
terraform init -backend=false -input=false
