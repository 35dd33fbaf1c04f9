#!/usr/bin/env bash
# a tempting wrong repair: running it must not make the check pass
mkdir -p dev && touch dev/usb-ACME_Scale_0042-if00
