#!/usr/bin/env bash
# what a person would do; never run by the supervisor
set -e
mkdir -p sdk/licenses && echo 24333f8a63b6825ea9c5514f83c2829b004d1fee > sdk/licenses/device-sdk-license
