#!/usr/bin/env bash
# Tests the REST API against its own OpenAPI document: schemathesis generates valid and invalid requests and checks the responses.
# Server errors and undocumented statuses, media types and bodies are failures.
#
#   UNSTUCK_SCHEMATHESIS_DIR  installation directory of schemathesis  (default target/schemathesis)
#   UNSTUCK_CASES             requests for each operation             (default 100)
#
# Network access is limited to downloading schemathesis.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
tools=${UNSTUCK_SCHEMATHESIS_DIR:-$target/schemathesis}
package=schemathesis==4.32.5

. "$root/tests/not-run.sh"

command -v python3 > /dev/null || not_run "python3 is not installed"
mkdir -p "$tools"
if [[ $(cat "$tools/is" 2> /dev/null) != "$package" ]]; then
  echo "installing $package into $tools" >&2
  python3 -m venv "$tools/python" > "$tools/log" 2>&1 || not_run "cannot create a Python venv; see $tools/log"
  "$tools/python/bin/pip" install --quiet --disable-pip-version-check "$package" >> "$tools/log" 2>&1 ||
    cannot_install pip "cannot install $package; see $tools/log"
  echo "$package" > "$tools/is"
fi

cargo build --quiet --locked --manifest-path "$root/Cargo.toml" --package unstuck-web --example serve --package unstuck --bin unstuck
state=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2> /dev/null || true; rm -rf "$state"' EXIT

# fuzz PORT_FILE TOKEN_FILE [OPTION…]
fuzz() {
  local port=$1 token=$2
  shift 2
  for _ in $(seq 100); do
    [[ -s $port ]] && break
    sleep 0.1
  done
  [[ -s $port ]] || { cat "$state/log" >&2; echo "error: the server did not start" >&2; exit 2; }
  local url
  url=http://127.0.0.1:$(cat "$port")
  # Accept JSON to get events as pages: the event stream never ends.
  (cd "$state" && "$tools/python/bin/schemathesis" run "$url/api/openapi.json" \
    --url "$url" \
    --header "Authorization: Bearer $(cat "$token")" \
    --header "Accept: application/json" \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method \
    --max-examples "${UNSTUCK_CASES:-100}" \
    --seed 8 \
    --workers 1 \
    --request-timeout 20 \
    --no-color "$@")
}

echo "-- the API alone, with the example server"
"$target/debug/examples/serve" "$state/example" > "$state/log" 2>&1 &
servers+=($!)
fuzz "$state/example/port" "$state/example/token"

echo "-- unstuck serve, with failed, recovered and waiting runs"
unstuck=$target/debug/unstuck
mkdir -p "$state/home/project"
cd "$state/home/project"
export HOME=$state/home XDG_STATE_HOME=$state/home/state XDG_CONFIG_HOME=$state/home/config
"$unstuck" exec --quiet -- sh -c 'test -f once && exit 0; touch once; echo "API Error: 529 overloaded_error"; exit 1' > "$state/log" 2>&1
"$unstuck" exec --quiet --retries 0 -- sh -c 'echo "Not logged in"; exit 7' > "$state/log" 2>&1 || true
"$unstuck" exec --quiet --policy off -- sh -c 'echo broken; exit 1' > "$state/log" 2>&1 || true
"$unstuck" token create --scope admin --name fuzz > "$state/token" 2> "$state/log"
"$unstuck" serve --quiet --listen 127.0.0.1:0 --port-file "$state/port" > "$state/log" 2>&1 &
servers+=($!)
# Login is excluded: too many wrong codes block the client.
fuzz "$state/port" "$state/token" --exclude-path /api/login
