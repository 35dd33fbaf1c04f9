#!/usr/bin/env bash
# Real agent CLIs (Claude Code, Codex, Gemini CLI) against an LLM API that fails on purpose: by themselves, through a shared
# gateway (`unstuck serve`), and through a private one (`unstuck exec`). With a gateway a CLI does not notice what passes by
# itself, and one prompt costs one retry ladder.
#
#   UNSTUCK_BIN         the program to try             (default target/release/unstuck)
#   FAULTS_BIN          the failing API                (default target/release/unstuck-faults)
#   UNSTUCK_AGENTS_DIR  where the CLIs are installed   (default target/agents)
#   ONLY                only these rows, a regular expression for "agent way scenario"
#
# Nothing leaves the machine but the download of the CLIs: their API is on 127.0.0.1, their keys are made up, their
# homes are thrown away, and every other address is sent to a proxy that is not there.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
unstuck=${UNSTUCK_BIN:-$root/target/release/unstuck}
faults=${FAULTS_BIN:-$root/target/release/unstuck-faults}
agents=${UNSTUCK_AGENTS_DIR:-$root/target/agents}
claude_version=2.1.325
codex_version=0.166.0
gemini_version=0.61.0
# Claude Code alone tries for three minutes, Gemini CLI for longer.
patience=240
retries=2

skip() { echo "skipped: $*"; exit 0; }
fail() { echo "error: $*" >&2; exit 2; }

# --- the CLIs ---

platform() {
  local os arch
  case $(uname -s) in Linux) os=linux ;; Darwin) os=darwin ;; *) return 1 ;; esac
  case $(uname -m) in x86_64) arch=x64 ;; aarch64 | arm64) arch=arm64 ;; *) return 1 ;; esac
  echo "$os-$arch"
}

install_agents() {
  local package
  package=@anthropic-ai/claude-code-$(platform) || skip "there is no build of the CLIs for this machine"
  claude=$agents/node_modules/$package/claude
  codex=$agents/node_modules/.bin/codex
  gemini=$agents/node_modules/.bin/gemini
  [[ -x $claude && -x $codex && -x $gemini ]] && return
  command -v npm > /dev/null || skip "npm is not installed"
  mkdir -p "$agents"
  echo "installing the CLIs into $agents" >&2
  npm install --prefix "$agents" --no-save --no-audit --no-fund --loglevel=error \
    "$package@$claude_version" "@openai/codex@$codex_version" "@google/gemini-cli@$gemini_version" \
    > "$agents/npm.log" 2>&1 || skip "npm could not download the CLIs, see $agents/npm.log"
  [[ -x $claude && -x $codex && -x $gemini ]] || skip "the packages came without their programs"
}

# --- one row ---

started() { # name of the port file, log, command...: starts it and writes its address into $address
  local port=$place/$1 log=$place/$2
  shift 2
  "$@" --port-file "$port" > "$log" 2>&1 &
  running+=($!)
  for _ in $(seq 600); do
    [[ -s $port ]] && break
    sleep 0.05
  done
  [[ -s $port ]] || fail "it did not start: $(cat "$log")"
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

configure() { # base URL of OpenAI, or nothing where exec says it
  mkdir -p "$place/home/.codex" "$place/home/.gemini" "$place/project"
  {
    echo 'model = "gpt-5.1"'
    [[ -z $1 ]] || echo 'model_provider = "faults"'
    printf 'check_for_update_on_startup = false\n[analytics]\nenabled = false\n'
    [[ -z $1 ]] || cat << TOML
[model_providers.faults]
name = "faults"
base_url = "$1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
TOML
  } > "$place/home/.codex/config.toml"
  # A provider of the user's own takes its key from the environment; the built-in one takes it from here.
  [[ -n $1 ]] || echo '{"OPENAI_API_KEY":"made-up"}' > "$place/home/.codex/auth.json"
  cat > "$place/home/.gemini/settings.json" << 'JSON'
{"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false},
 "security": {"auth": {"selectedType": "gemini-api-key"}}}
JSON
}

run() { # command...
  local begun=$SECONDS
  code=0
  (
    cd "$place/project"
    timeout "$patience" env -i PATH="$PATH" HOME="$place/home" TZ=UTC LANG=C.UTF-8 \
      XDG_STATE_HOME="$place/state" XDG_CONFIG_HOME="$place/config" \
      HTTPS_PROXY=http://127.0.0.1:9 HTTP_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 \
      ANTHROPIC_BASE_URL="$anthropic" ANTHROPIC_API_KEY=made-up \
      OPENAI_BASE_URL="$openai" OPENAI_API_KEY=made-up CODEX_HOME="$place/home/.codex" \
      GOOGLE_GEMINI_BASE_URL="$google" GEMINI_API_KEY=made-up \
      DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1 \
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
      "$@" < /dev/null > "$place/out" 2> "$place/err"
  ) || code=$?
  seconds=$((SECONDS - begun))
}

play() { # agent, way, script: the agent is asked once
  local command
  printf '%s\n' "$3" > "$place/script.toml"
  started api.port api.log "$faults" serve --script "$place/script.toml" --log "$place/requests.jsonl"
  case $1 in
    claude) command=("$claude" -p "Say hello") ;;
    codex) command=("$codex" exec --skip-git-repo-check "Say hello") ;;
    gemini) command=("$gemini" --skip-trust -m gemini-3-pro -p "Say hello") ;;
  esac
  anthropic=$address openai=$address/v1 google=$address
  case $2 in
    alone) configure "$openai" ;;
    serve)
      started gateway.port gateway.log "$unstuck" --store "$place/store.db" serve --listen 127.0.0.1:0 \
        --retries "$retries" --upstream "anthropic=$anthropic" --upstream "openai=$openai" --upstream "gemini=$google"
      anthropic=$address/anthropic openai=$address/openai/v1 google=$address/gemini
      configure "$openai"
      ;;
    exec)
      configure ""
      command=("$unstuck" exec --retries "$retries" -- "${command[@]}")
      ;;
  esac
  run "${command[@]}"
}

requests() { # how often the model was asked
  grep -c '"reply":"' "$place/requests.jsonl" 2> /dev/null || true
}

times() { # expected number of requests
  local count
  count=$(requests)
  [[ $count == "$1" ]] || echo "$count requests instead of $1"
}

answered() {
  if [[ $code != 0 ]]; then
    echo "exit code $code instead of 0"
  elif ! grep -q "Hello from the script" "$place/out"; then
    echo "no answer on standard output"
  fi
}

unnoticed() { # the problem, if the CLI had to try again by itself, or was started again
  ! grep -qE 'Reconnecting|Retrying with backoff|unstuck: attempt 2' "$place/out" "$place/err" || echo "the CLI noticed it"
}

refused() {
  [[ $code != 0 ]] || echo "exit code 0 although nothing was answered"
}

first() { # the first of some problems
  local problem
  for problem in "$@"; do
    if [[ -n $problem ]]; then echo "$problem" && return; fi
  done
}

# --- the scenarios: what the API does, and what must come of it ---

answer='[[step]]
answer = { text = "Hello from the script" }
times = "always"'

works() { # agent, way
  play "$1" "$2" "$answer"
  problem=$(first "$(answered)")
}

overloaded() { # agent, way: as often as there are retries
  local retries=3
  play "$1" "$2" "[[step]]
overloaded = {}
times = $retries
$answer"
  problem=$(first "$(answered)" "$([[ $2 == alone ]] || first "$(times $((retries + 1)))" "$(unnoticed)")")
}

invalid_key() { # agent, way
  play "$1" "$2" '[[step]]
auth = {}
times = "always"'
  problem=$(first "$(refused)" "$([[ $2 == alone ]] || times 1)")
}

broken() { # agent, way
  play "$1" "$2" '[[step]]
server_error = {}
times = "always"'
  problem=$(first "$(refused)" "$([[ $2 == alone ]] || times $((retries + 1)))")
}

row() { # agent, way, scenario: plays it in a place of its own and prints what came of it
  local problem verdict=ok
  running=()
  place=$(mktemp -d)
  trap 'stop_all; rm -rf "$place"' EXIT
  "$3" "$1" "$2"
  if [[ -n $problem ]]; then
    verdict="FAILED: $problem"
    { echo "--- $1, $2, $3: $problem"; tail -n 20 "$place/out" "$place/err" "$place"/gateway.log 2> /dev/null; } >&2
  fi
  printf '%-7s %-6s %-12s %4s %5ss %9s  %s\n' "$1" "$2" "$3" "$code" "$seconds" "$(requests)" "$verdict"
  [[ -z $problem ]]
}

install_agents
[[ -x $faults ]] || fail "no program at $faults, build it with: cargo build --release -p unstuck-faults"
[[ -x $unstuck ]] || fail "no program at $unstuck, build it with: cargo build --release -p unstuck"

wanted() { [[ "$*" =~ ${ONLY:-.} ]]; }

failures=0
asides=()
aside_rows=$(mktemp -d)
trap 'rm -rf "$aside_rows"' EXIT
printf '%-7s %-6s %-12s %4s %6s %9s  %s\n' agent way scenario exit time requests result
# By themselves the CLIs mostly wait, so they do it beside the rest.
for agent in claude codex gemini; do
  for scenario in works invalid_key broken; do
    wanted "$agent" alone "$scenario" || continue
    (row "$agent" alone "$scenario") > "$aside_rows/$agent-$scenario" &
    asides+=($!)
  done
done
for agent in claude codex gemini; do
  for way in serve exec; do
    for scenario in works overloaded invalid_key broken; do
      wanted "$agent" "$way" "$scenario" || continue
      (row "$agent" "$way" "$scenario") || failures=$((failures + 1))
    done
  done
done
for aside in "${asides[@]:-}"; do
  [[ -z $aside ]] || wait "$aside" || failures=$((failures + 1))
done
cat "$aside_rows"/* 2> /dev/null || true
[[ $failures == 0 ]] || { echo "$failures failed" >&2 && exit 1; }
