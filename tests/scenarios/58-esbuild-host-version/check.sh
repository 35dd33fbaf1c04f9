#!/usr/bin/env bash
exec npm run build
