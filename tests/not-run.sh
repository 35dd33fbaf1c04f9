# Sourced by scripts that cannot run on every machine. Exit code 77 tells ./check that a script did not run; the line
# `not run: …` has the reason.
# shellcheck shell=bash

not_run() { echo "not run: $*"; exit 77; }
fail() { echo "error: $*" >&2; exit 2; }

# A failed installation is an error if the registry is reachable.
cannot_install() { # npm or pip, error
  case $1 in
    npm) npm view is-odd version > /dev/null 2>&1 || not_run "the npm registry is unreachable" ;;
    pip) python3 -m pip --disable-pip-version-check index versions six > /dev/null 2>&1 || not_run "the pip registry is unreachable" ;;
  esac
  fail "$2 (the $1 registry is reachable)"
}
