#!/usr/bin/env bash
exec prove -b t
