#!/usr/bin/env bash
export CHECKPOINT_DISABLE=1
exec terraform validate -no-color
