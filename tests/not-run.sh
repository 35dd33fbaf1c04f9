# What the scripts share that may be unable to run on a machine; they source it. Exit code 77 says so to ./check, with the
# reason in a line `not run: …`.
# shellcheck shell=bash

not_run() { echo "not run: $*"; exit 77; }
fail() { echo "error: $*" >&2; exit 2; }

# Where the registry is reached, an installation that fails is a failure.
cannot_install() { # npm or pip, what failed
  case $1 in
    npm) npm view is-odd version > /dev/null 2>&1 || not_run "npm does not reach its registry" ;;
    pip) python3 -m pip --disable-pip-version-check index versions six > /dev/null 2>&1 || not_run "pip does not reach its registry" ;;
  esac
  fail "$1 reaches its registry, but $2"
}
