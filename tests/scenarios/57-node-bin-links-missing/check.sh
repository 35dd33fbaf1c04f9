#!/usr/bin/env bash
exec npm run lint
