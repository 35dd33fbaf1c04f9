# Sourced by the scripts that test real agent CLIs. Provides the programs, the CLIs, a temporary directory for each scenario,
# and an isolated environment.
#
#   UNSTUCK_BIN         program under test                     (default target/release/unstuck)
#   FAULTS_BIN          fault injection server                 (default target/release/unstuck-faults)
#   UNSTUCK_AGENTS_DIR  installation directory of the CLIs     (default unstuck-agents in the user's cache)
#
# Network access is limited to downloading the CLIs: their API is on 127.0.0.1, their keys are fake, their home directories are
# temporary, and all other requests go to a proxy that does not exist.
# shellcheck shell=bash disable=SC2034  # the sourcing scripts use these variables

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
unstuck=${UNSTUCK_BIN:-$root/target/release/unstuck}
faults=${FAULTS_BIN:-$root/target/release/unstuck-faults}
. "$root/tests/not-run.sh"

# --- programs ---

# tests/agent_clients.py defines the CLIs and their versions, and installs missing ones.
need_programs() {
  local told code=0
  told=$(python3 "$root/tests/agent_clients.py" claude codex gemini) || code=$?
  case $code in
    0) ;;
    77) not_run "${told#not run: }" ;;
    *) fail "cannot install the CLIs: $told" ;;
  esac
  agents=$(tail -n 1 <<< "$told")
  claude=$agents/claude codex=$agents/codex gemini=$agents/gemini
  # Roles find the CLIs in PATH.
  PATH=$agents:$PATH
  [[ -x $faults ]] || fail "$faults not found; build it with: cargo build --release -p unstuck-faults"
  [[ -x $unstuck ]] || fail "$unstuck not found; build it with: cargo build --release -p unstuck"
}

# --- temporary directory ---

new_place() { # stops the servers of the previous one
  leave_place
  place=$(mktemp -d)
  mkdir -p "$place/home/.codex" "$place/home/.gemini" "$place/project" "$place/config/unstuck"
  trap leave_place EXIT
  nothing_of_ours=(
    env -i PATH="$PATH" HOME="$place/home" TZ=UTC LANG=C.UTF-8
    XDG_STATE_HOME="$place/state" XDG_CONFIG_HOME="$place/config" CODEX_HOME="$place/home/.codex"
    HTTPS_PROXY=http://127.0.0.1:9 HTTP_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1
    DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
  )
}

leave_place() {
  stop_all
  [[ -z ${place:-} ]] || rm -rf "$place"
  place=
}

running=()
started() { # name, command...: starts a server and sets $address
  local port=$place/$1.port log=$place/$1.log
  shift
  "${nothing_of_ours[@]}" "$@" --port-file "$port" > "$log" 2>&1 &
  running+=($!)
  for _ in $(seq 600); do
    [[ -s $port ]] && break
    sleep 0.05
  done
  [[ -s $port ]] || fail "server did not start: $(cat "$log")"
  address=http://127.0.0.1:$(cat "$port")
}

stop_all() {
  local one
  for one in "${running[@]:-}"; do
    if [[ -n $one ]]; then
      kill "$one" 2> /dev/null || true
      wait "$one" 2> /dev/null || true
    fi
  done
  running=()
}

start_api() { # script: starts the fault injection server
  printf '%s\n' "$1" > "$place/script.toml"
  started api "$faults" serve --script "$place/script.toml" --log "$place/requests.jsonl"
}

in_project() { # variable=value... command...
  (cd "$place/project" && exec "${nothing_of_ours[@]}" "$@")
}

# Codex reads its endpoint and retry limits from a file only.
configure_codex() { # base URL, or '' for the built-in provider; more lines for the provider
  {
    echo 'model = "gpt-5.1"'
    [[ -z ${1:-} ]] || echo 'model_provider = "faults"'
    printf 'check_for_update_on_startup = false\n[analytics]\nenabled = false\n'
    [[ -z ${1:-} ]] || cat << TOML
[model_providers.faults]
name = "faults"
base_url = "$1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
${2:-}
TOML
  } > "$place/home/.codex/config.toml"
  # A custom provider reads its key from the environment, the built-in one from this file.
  [[ -n ${1:-} ]] || echo '{"OPENAI_API_KEY":"made-up"}' > "$place/home/.codex/auth.json"
}

agent_command() { # agent, argument...: sets $command
  case $1 in
    claude) command=("$claude" -p "Say hello") ;;
    codex) command=("$codex" exec --skip-git-repo-check "Say hello") ;;
    gemini) command=("$gemini" --skip-trust -m gemini-3-pro -p "Say hello") ;;
  esac
  command+=("${@:2}")
}

# --- assertions; callers that run a command set $code to its exit code ---

code=

replies() { # prints the API's responses, such as "rate_limit,overloaded,answer"
  [[ -f $place/requests.jsonl ]] || return 0
  grep -o '"reply":"[a-z_]*"' "$place/requests.jsonl" | cut -d'"' -f4 | paste -sd, -
}

answered() { # prints the problem if the answer did not arrive
  if [[ $code != 0 ]]; then
    echo "exit code $code instead of 0"
  elif ! grep -q "Hello from the script" "$place/out"; then
    echo "no answer on standard output"
  fi
}

first() { # problem...: prints the first non-empty one
  local problem
  for problem in "$@"; do
    if [[ -n $problem ]]; then echo "$problem" && return; fi
  done
}
