#!/usr/bin/env bash
# Tests the official SDKs of Anthropic, OpenAI and Google, for Python and JavaScript, through `unstuck serve`, with and without
# API faults. Only their base URL is configured. tests/sdks/cases.py has the test cases.
#
#   UNSTUCK_BIN       program under test                  (default target/release/unstuck)
#   FAULTS_BIN        fault injection server              (default target/release/unstuck-faults)
#   UNSTUCK_SDKS_DIR  installation directory of the SDKs  (default target/sdks)
#   UNSTUCK_SDKS      versions: pinned or latest          (default pinned)
#
#   tests/sdks.sh [--only WORD] [--markdown]
#
# Network access is limited to downloading the SDKs: their API is on 127.0.0.1, and their keys are fake.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
unstuck=${UNSTUCK_BIN:-$root/target/release/unstuck}
faults=${FAULTS_BIN:-$root/target/release/unstuck-faults}
sdks=${UNSTUCK_SDKS_DIR:-$root/target/sdks}
python_sdks=(anthropic==2.8.0 openai==3.49.0 google-genai==3.1.0)
js_sdks=(@anthropic-ai/sdk@1.8.0 openai@6.49.0 @google/genai@2.32.0)

. "$root/tests/not-run.sh"

newest() { # package...: prints the names without versions
  local package
  for package in "$@"; do
    package=${package%%==*}
    [[ $package == ?*@* ]] && package=${package%@*}
    echo "$package"
  done
}

if [[ ${UNSTUCK_SDKS:-pinned} == latest ]]; then
  sdks=$sdks-latest
  mapfile -t python_sdks < <(newest "${python_sdks[@]}")
  mapfile -t js_sdks < <(newest "${js_sdks[@]}")
fi

install_python() {
  [[ $(cat "$sdks/python.is" 2> /dev/null) == "${python_sdks[*]}" ]] && return
  echo "installing ${python_sdks[*]} into $sdks" >&2
  python3 -m venv "$sdks/python" > "$sdks/python.log" 2>&1 || not_run "cannot create a Python venv; see $sdks/python.log"
  "$sdks/python/bin/pip" install --quiet --disable-pip-version-check "${python_sdks[@]}" >> "$sdks/python.log" 2>&1 ||
    cannot_install pip "cannot install the SDKs; see $sdks/python.log"
  echo "${python_sdks[*]}" > "$sdks/python.is"
}

install_js() {
  [[ $(cat "$sdks/js.is" 2> /dev/null) == "${js_sdks[*]}" ]] && return
  echo "installing ${js_sdks[*]} into $sdks" >&2
  mkdir -p "$sdks/js"
  npm install --prefix "$sdks/js" --no-save --no-audit --no-fund --loglevel=error "${js_sdks[@]}" > "$sdks/js.log" 2>&1 ||
    cannot_install npm "cannot install the SDKs; see $sdks/js.log"
  echo "${js_sdks[*]}" > "$sdks/js.is"
}

for needed in python3 node npm; do
  command -v "$needed" > /dev/null || not_run "$needed is not installed"
done
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || not_run "python3 is older than 3.10"
[[ -x $faults ]] || fail "$faults not found; build it with: cargo build --release -p unstuck-faults"
[[ -x $unstuck ]] || fail "$unstuck not found; build it with: cargo build --release -p unstuck"
mkdir -p "$sdks"
install_python
install_js
# Node resolves modules relative to the importing file.
cp "$root/tests/sdks/client.mjs" "$sdks/js/client.mjs"

exec python3 -B "$root/tests/sdks/conduct.py" --unstuck "$unstuck" --faults "$faults" \
  --python "$sdks/python/bin/python" --js "$sdks/js" "$@"
