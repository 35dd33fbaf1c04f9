#!/usr/bin/env bash
# Tests real agent CLIs (Claude Code, Codex, Gemini CLI) against an LLM API that fails on purpose: alone, through a shared gateway
# (`unstuck serve`), and through a private one (`unstuck exec`). With a gateway, a CLI does not notice transient failures, and one
# prompt costs one series of retries.
#
#   ONLY                run only matching rows: a regular expression for "agent mode scenario"
#
# tests/agents-common.sh lists the other variables.
set -euo pipefail
. "$(dirname "$0")/agents-common.sh"

# Without a gateway, Claude Code retries for three minutes, Gemini CLI for longer.
patience=240
retries=2

# --- one row ---

prepare() { # agent, way, script, argument...: starts the API and the gateway, and sets $command to one agent call
  local agent=$1 way=$2
  start_api "$3"
  api=$address
  agent_command "$agent" "${@:4}"
  anthropic=$api openai=$api/v1 google=$api
  case $way in
    alone) configure_codex "$openai" ;;
    serve)
      started gateway "$unstuck" --store "$place/store.db" serve --listen 127.0.0.1:0 \
        --retries "$retries" --upstream "anthropic=$anthropic" --upstream "openai=$openai" --upstream "gemini=$google"
      anthropic=$address/anthropic openai=$address/openai/v1 google=$address/gemini
      configure_codex "$openai"
      ;;
    exec)
      configure_codex
      command=("$unstuck" exec --retries "$retries" -- "${command[@]}")
      ;;
  esac
  cat > "$place/home/.gemini/settings.json" << 'JSON'
{"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false},
 "security": {"auth": {"selectedType": "gemini-api-key"}}}
JSON
}

asked() { # command...
  in_project ANTHROPIC_BASE_URL="$anthropic" ANTHROPIC_API_KEY=made-up OPENAI_BASE_URL="$openai" OPENAI_API_KEY=made-up \
    GOOGLE_GEMINI_BASE_URL="$google" GEMINI_API_KEY=made-up "$@" > "$place/out" 2> "$place/err"
}

play() { # agent, way, script, argument...: runs the agent once
  local begun
  prepare "$@"
  begun=$SECONDS
  code=0
  asked timeout "$patience" "${command[@]}" < "${input:-/dev/null}" || code=$?
  seconds=$((SECONDS - begun))
}

requests() { # prints the number of requests to the model
  grep -c '"reply":"' "$place/requests.jsonl" 2> /dev/null || true
}

times() { # expected number of requests
  local count
  count=$(requests)
  [[ $count == "$1" ]] || echo "$count requests instead of $1"
}

unnoticed() { # prints the problem if the CLI retried or was restarted
  ! grep -qE 'Reconnecting|Retrying with backoff|unstuck: attempt 2' "$place/out" "$place/err" || echo "the CLI noticed the failure"
}

refused() {
  [[ $code != 0 ]] || echo "exit code 0 without an answer"
}

# --- scenarios: behavior of the API and expected result ---

answer='[[step]]
answer = { text = "Hello from the script" }
times = "always"'

works() { # agent, way
  play "$1" "$2" "$answer"
  problem=$(first "$(answered)")
}

overloaded() { # agent, way: fails as often as retries are allowed
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

# The keep-alive stream has already started when the gateway gives up.
held_failed() { # agent, way
  printf '[gateway.timeouts]\nkeep_alive = "500ms"\n' > "$place/config/unstuck/config.toml"
  play "$1" "$2" '[[step]]
rate_limit = { retry_after = 2 }
times = "always"'
  problem=$(first "$(refused)" "$(times $((retries + 1)))")
}

long_prompt() { # agent, way: 200 KB on standard input
  local input=$place/prompt least=200000
  yes "and this" | head -c "$least" > "$input"
  play "$1" "$2" "$answer"
  problem=$(first "$(answered)" "$(times 1)" "$(got_at_least "$least")")
}

got_at_least() { # bytes
  local size
  size=$(grep -o '"content-length","[0-9]*"' "$place/requests.jsonl" | head -n 1 | cut -d'"' -f4)
  [[ ${size:-0} -ge $1 ]] || echo "the API got ${size:-0} bytes"
}

# The model calls a tool; the CLI runs it and sends the result.
tool() { # agent, way
  local call more
  case $1 in
    claude) call='name = "Bash", input = { command = "touch called" }' more=(--allowedTools Bash) ;;
    codex) call='name = "exec_command", input = { cmd = "touch called" }' more=(--dangerously-bypass-approvals-and-sandbox) ;;
    gemini) call='name = "run_shell_command", input = { command = "touch called" }' more=(--yolo) ;;
  esac
  play "$1" "$2" "[[step]]
tool_call = { $call }
$answer" "${more[@]}"
  problem=$(first "$(answered)" "$(times 2)" "$([[ -e $place/project/called ]] || echo "the tool was not run")")
}

# Ctrl-C during an answer that takes one minute.
cancel() { # agent, way
  local begun=$SECONDS cli noticed=
  prepare "$1" "$2" "[pace]
chunks = 300
between = \"200ms\"
[[step]]
answer = { text = \"$(yes 'Hello from the script' | head -n 300 | paste -sd' ' -)\" }
times = \"always\""
  # With job control, the command gets its own process group, as it has when a terminal sends Ctrl-C. A background shell ignores
  # SIGINT, and unstuck inherits that, so the handler is reset.
  set -m
  asked env --default-signal=INT "${command[@]}" < /dev/null &
  cli=$!
  set +m
  within 30 counts in_flight 1 || noticed="no request was sent"
  sleep 2
  kill -INT -- "-$cli" 2> /dev/null || noticed=${noticed:-"the CLI exited too early"}
  within 10 counts in_flight 0 || noticed=${noticed:-"the request was not canceled"}
  within 10 gone "$cli" || { kill -KILL -- "-$cli" && noticed=${noticed:-"the CLI is still running"}; }
  code=0
  wait "$cli" || code=$?
  seconds=$((SECONDS - begun))
  problem=$(first "$noticed" "$(times 1)" "$(counts abandoned 1 || echo "the response was read to its end")")
}

counts() { # name, number: succeeds if the API's counter has this value
  curl --noproxy '*' -s "$api/__faults/stats" | grep -q "\"$1\":$2[,}]"
}

gone() { # process
  ! kill -0 "$1" 2> /dev/null
}

within() { # seconds, condition...
  local until=$((SECONDS + $1))
  until "${@:2}"; do
    ((SECONDS < until)) || return 1
    sleep 0.1
  done
}

row() { # agent, way, scenario: runs it in a new temporary directory and prints the result
  local problem verdict=ok
  new_place
  "$3" "$1" "$2"
  if [[ -n $problem ]]; then
    verdict="FAILED: $problem"
    { echo "--- $1, $2, $3: $problem"; tail -n 20 "$place/out" "$place/err" "$place"/gateway.log 2> /dev/null; } >&2
  fi
  printf '%-7s %-6s %-12s %4s %5ss %9s  %s\n' "$1" "$2" "$3" "$code" "$seconds" "$(requests)" "$verdict"
  [[ -z $problem ]]
}

need_programs
command -v curl > /dev/null || not_run "curl is not installed"

wanted() { [[ "$*" =~ ${ONLY:-.} ]]; }

failures=0
asides=()
aside_rows=$(mktemp -d)
trap 'rm -rf "$aside_rows"' EXIT
printf '%-7s %-6s %-12s %4s %6s %9s  %s\n' agent mode scenario exit time requests result
# CLIs without a gateway mostly wait, so they run in parallel to the rest.
for agent in claude codex gemini; do
  for scenario in works invalid_key broken; do
    wanted "$agent" alone "$scenario" || continue
    (row "$agent" alone "$scenario") > "$aside_rows/$agent-$scenario" &
    asides+=($!)
  done
done
for agent in claude codex gemini; do
  for way in serve exec; do
    for scenario in works overloaded invalid_key broken held_failed long_prompt tool cancel; do
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
