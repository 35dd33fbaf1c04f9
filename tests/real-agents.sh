#!/usr/bin/env bash
# Tests real agent CLIs (Claude Code, Codex) under `unstuck exec` and `unstuck run`, against an LLM API that fails on purpose.
# tests/agents-common.sh lists the variables.
set -euo pipefail
. "$(dirname "$0")/agents-common.sh"

patience=180

# --- one scenario ---

start_server() { # script
  new_place
  start_api "$1"
  url=$address
  configure_codex "$url/v1" $'request_max_retries = 0\nstream_max_retries = 0'
}

# claude_key is a variable because only subscriptions have a usage limit.
alone() { # command...
  in_project ANTHROPIC_BASE_URL="$url" "${claude_key:-ANTHROPIC_API_KEY}=made-up" CLAUDE_CODE_MAX_RETRIES=0 \
    OPENAI_API_KEY=made-up timeout "$patience" "$@" < /dev/null
}

# --- results ---

rows=()
failures=0
result() { # agent, scenario, problem or ''
  local verdict=ok
  if [[ -n $3 ]]; then
    verdict="FAILED: $3"
    failures=$((failures + 1))
    { echo "--- $1, $2: $3"; tail -n 20 "$place/out" "$place/err"; } >&2
  fi
  rows+=("$(printf '%-7s %-14s %4s %5ss  %-34s %s' "$1" "$2" "$code" "$seconds" "$(replies)" "$verdict")")
}

run() { # command...
  local begun=$SECONDS
  code=0
  alone "$@" > "$place/out" 2> "$place/err" || code=$?
  seconds=$((SECONDS - begun))
}

recovered() { # prints the problem if unstuck does not report a recovery
  alone "$unstuck" show --json > "$place/show" 2>> "$place/err" || { echo "unstuck show failed" && return; }
  grep -q recovered "$place/show" || echo "unstuck show does not report a recovery"
}

same_replies() { # expected
  [[ $(replies) == "$1" ]] || echo "API responses: $(replies) instead of $1"
}

# --- scenarios ---

answer='[[step]]
answer = { text = "Hello from the script" }'

by_itself() { # agent: without unstuck, to verify that the CLI works on this machine
  start_server "$answer"
  agent_command "$1"
  run "${command[@]}"
  result "$1" "alone" "$(first "$(answered)")"
}

two_faults() { # agent
  start_server "[[step]]
rate_limit = { retry_after = 1 }
[[step]]
overloaded = {}
$answer"
  agent_command "$1"
  run "$unstuck" exec --no-gateway -- "${command[@]}"
  result "$1" "two faults" "$(first "$(answered)" "$(same_replies rate_limit,overloaded,answer)" "$(recovered)")"
}

no_login() { # agent
  start_server '[[step]]
auth = {}'
  agent_command "$1"
  run "$unstuck" exec --no-gateway -- "${command[@]}"
  local wrong_code=
  [[ $code == 3 ]] || wrong_code="exit code $code instead of 3"
  result "$1" "no login" "$(first "$wrong_code" "$(same_replies auth)")"
}

# The CLIs report the minute of a reset but not the second, so the reset is the next full minute at least 5 s from now.
usage_limit() { # agent
  local now reset claude_key=CLAUDE_CODE_OAUTH_TOKEN
  now=$(date +%s)
  reset=$(((now + 5) / 60 * 60 + 60))
  start_server "[[step]]
usage_limit = { resets_at = \"$(utc "$reset")\", holds = true }
$answer"
  agent_command "$1"
  run "$unstuck" exec --no-gateway -- "${command[@]}"
  result "$1" "usage limit" "$(first "$(answered)" "$(same_replies usage_limit,answer)" "$(recovered)")"
}

# --- through the gateway: the CLI does not notice failures, and one prompt costs one series of retries ---

# unstuck configures Codex by command line, which does not override a custom provider; so none is configured here.
through_gateway() { # exec argument...
  configure_codex
  run env -u CLAUDE_CODE_MAX_RETRIES OPENAI_BASE_URL="$url/v1" \
    "$unstuck" exec "$@" -- "${command[@]}"
}

attempts() { # expected
  local count
  count=$(alone "$unstuck" store export --event attempt_started | grep -c . || true)
  [[ $count == "$1" ]] || echo "$count attempts instead of $1"
}

gateway_faults() { # agent
  start_server "[[step]]
rate_limit = { retry_after = 1 }
[[step]]
overloaded = {}
$answer"
  agent_command "$1"
  through_gateway
  result "$1" "gateway faults" "$(first "$(answered)" "$(same_replies rate_limit,overloaded,answer)" "$(attempts 1)")"
}

gateway_ladder() { # agent
  start_server '[[step]]
server_error = {}
times = "always"'
  agent_command "$1"
  through_gateway --retries 2
  local wrong_code=
  [[ $code == 3 ]] || wrong_code="exit code $code instead of 3"
  result "$1" "gateway ladder" "$(first "$wrong_code" "$(same_replies server_error,server_error,server_error)")"
}

utc() { # seconds since the epoch
  date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ 2> /dev/null || date -u -r "$1" +%Y-%m-%dT%H:%M:%SZ
}

# --- a pipeline ---

# Claude Code plans, Codex builds. Each gets a rate limit, an overload, a usage limit, then an answer.
pipeline_script() { # reset of the planner, reset of the builder
  local model reset answer
  for model in claude gpt; do
    reset=$1 answer='# Plan\nFirst the roof'
    [[ $model == claude ]] || { reset=$2 answer="The roof is built"; }
    cat << TOML
[[step]]
when = { model = "$model" }
rate_limit = { retry_after = 1 }
[[step]]
when = { model = "$model" }
overloaded = {}
[[step]]
when = { model = "$model" }
usage_limit = { resets_at = "$(utc "$reset")", holds = true }
[[step]]
when = { model = "$model" }
answer = { text = "$answer" }
TOML
  done
}

pipeline_config() {
  cat > "$place/project/unstuck.toml" << TOML
[run]
task = "Build a house"
[[role]]
id = "planner"
agent = "claude"
prompt = "Plan this: {{ task }}"
expect.sections = ["# Plan"]
env = { ANTHROPIC_BASE_URL = "$url" }
[[role]]
id = "builder"
agent = "codex"
needs = ["planner"]
prompt = "Build by this plan: {{ outputs.planner }}"
args = ["--skip-git-repo-check"]
env = { CODEX_HOME = "$place/home/.codex" }
TOML
}

run_files() { echo "$place"/project/.unstuck/runs/*; }

wait_for_the_limit() { # waits until the first role waits for its reset
  local patient=$((SECONDS + 60))
  until [[ $(replies) == *usage_limit ]] && grep -q '"status": "waiting"' "$(run_files)/state.json" 2> /dev/null; do
    ((SECONDS < patient)) || return 1
    sleep 0.1
  done
}

left_running() { # prints the processes that still run in the project
  local cwd
  for cwd in /proc/[0-9]*/cwd; do
    if [[ $(readlink "$cwd" 2> /dev/null) == "$place/project"* ]]; then
      tr '\0' ' ' < "${cwd%/cwd}/cmdline" 2> /dev/null || true
    fi
  done
}

output_of() { # role, expected
  local text
  text=$(cat "$(run_files)/roles/$1/output.md" 2> /dev/null) || true
  [[ $text == "$2" ]] || echo "$1 wrote '$text' instead of '$2'"
}

commands_of() { # program
  grep '"event":"attempt_started"' "$(run_files)/events.jsonl" | grep "\"$1\"" || true
}

attempts_of() { # program, expected
  local count
  count=$(commands_of "$1" | grep -c . || true)
  [[ $count == "$2" ]] || echo "$count attempts of $1 instead of $2"
}

# The fourth attempt must continue the conversation of the third, and describe the failure in its prompt.
conversation_went_on() { # role, program, its argument for continuing
  local attempts conversation
  attempts=$(run_files)/roles/$1/iteration-1
  conversation=$(commands_of "$2" | tail -n 1 | grep -o "\"$3\",\"[0-9a-f-]*\"" | cut -d'"' -f4 || true)
  if [[ -z $conversation ]]; then
    echo "$2 did not continue a conversation"
  elif ! grep -q -- "$conversation" "$attempts/attempt-3/stdout.log"; then
    echo "$2 continued a conversation other than its last"
  elif ! grep -q "You've hit your .*limit" "$attempts/attempt-4/prompt.md"; then
    echo "the prompt for $2 does not state why it stopped"
  fi
}

pipeline() {
  local now reset claude_key=CLAUDE_CODE_OAUTH_TOKEN begun=$SECONDS supervisor killed='' after_kill unfinished='' same
  now=$(date +%s)
  reset=$(((now + 30) / 60 * 60 + 60))
  start_server "$(pipeline_script "$reset" $((reset + 60)))"
  pipeline_config
  alone sh -c 'echo $$ > "$0" && exec "$@"' "$place/pid" "$unstuck" run --no-gateway > "$place/out" 2> "$place/err" &
  supervisor=$!
  wait_for_the_limit || killed="never waited for the usage limit"
  kill -9 "$(cat "$place/pid")" || killed=${killed:-"exited before it could be killed"}
  wait "$supervisor" || true
  # Processes of a dead supervisor get a third of a second to exit.
  sleep 2
  after_kill=$(left_running)
  run "$unstuck" resume --no-gateway
  seconds=$((SECONDS - begun))
  [[ $code == 0 ]] || unfinished="exit code $code instead of 0"
  same=rate_limit,overloaded,usage_limit,answer
  result both pipeline "$(first "$killed" "${after_kill:+still running after the kill: $after_kill}" "$unfinished" \
    "$(same_replies "$same,$same")" \
    "$(output_of planner $'# Plan\nFirst the roof')" "$(output_of builder "The roof is built")" \
    "$(attempts_of claude 4)" "$(attempts_of codex 4)" \
    "$(conversation_went_on planner claude --resume)" "$(conversation_went_on builder codex resume)" \
    "$(recovered)" "$(left_running)")"
}

# Runs a scenario that mostly waits in the background, and prints its row.
aside() { # scenario
  "$1"
  printf '%s\n' "${rows[@]}"
  exit "$failures"
}

need_programs
row_aside=$(mktemp)
aside pipeline > "$row_aside" &
pipeline=$!
for agent in claude codex; do
  for scenario in by_itself two_faults no_login usage_limit gateway_faults gateway_ladder; do
    "$scenario" "$agent"
  done
done
wait "$pipeline" || failures=$((failures + 1))
rows+=("$(cat "$row_aside")")
rm "$row_aside"

printf '%-7s %-14s %4s %6s  %-34s %s\n' agent scenario exit time "API responses" result
printf '%s\n' "${rows[@]}"
[[ $failures == 0 ]] || { echo "$failures of ${#rows[@]} failed" >&2 && exit 1; }
