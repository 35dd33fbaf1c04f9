#!/usr/bin/env bash
set -e
git worktree prune
