# What the scripts with real agent CLIs share; they source it. The programs, the CLIs, a place of one's own for each
# scenario, and the environment in which everything runs there.
#
#   UNSTUCK_BIN         the program to try             (default target/release/unstuck)
#   FAULTS_BIN          the failing API                (default target/release/unstuck-faults)
#   UNSTUCK_AGENTS_DIR  where the CLIs are installed   (default target/agents)
#
# Nothing leaves the machine but the download of the CLIs: their API is on 127.0.0.1, their keys are made up, their
# homes are thrown away, and every other address is sent to a proxy that is not there.
# shellcheck shell=bash disable=SC2034  # what is set here is read there

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
unstuck=${UNSTUCK_BIN:-$root/target/release/unstuck}
faults=${FAULTS_BIN:-$root/target/release/unstuck-faults}
agents=${UNSTUCK_AGENTS_DIR:-$root/target/agents}
claude_version=2.1.325
codex_version=0.166.0
gemini_version=0.61.0

skip() { echo "skipped: $*"; exit 0; }
fail() { echo "error: $*" >&2; exit 2; }

# --- the programs ---

platform() {
  local os arch
  case $(uname -s) in Linux) os=linux ;; Darwin) os=darwin ;; *) return 1 ;; esac
  case $(uname -m) in x86_64) arch=x64 ;; aarch64 | arm64) arch=arm64 ;; *) return 1 ;; esac
  echo "$os-$arch"
}

need_programs() { # installs the CLIs where they are missing
  local claude_package packages
  claude_package=@anthropic-ai/claude-code-$(platform) || skip "there is no build of the CLIs for this machine"
  packages=("$claude_package@$claude_version" "@openai/codex@$codex_version" "@google/gemini-cli@$gemini_version")
  claude=$agents/node_modules/$claude_package/claude
  codex=$agents/node_modules/.bin/codex
  gemini=$agents/node_modules/.bin/gemini
  # A role calls them by their names.
  PATH=$(dirname "$claude"):$(dirname "$codex"):$PATH
  [[ $(cat "$agents/npm.is" 2> /dev/null) == "${packages[*]}" ]] || install_agents "${packages[@]}"
  [[ -x $claude && -x $codex && -x $gemini ]] || skip "the packages came without their programs"
  [[ -x $faults ]] || fail "no program at $faults, build it with: cargo build --release -p unstuck-faults"
  [[ -x $unstuck ]] || fail "no program at $unstuck, build it with: cargo build --release -p unstuck"
}

install_agents() { # package...
  command -v npm > /dev/null || skip "npm is not installed"
  mkdir -p "$agents"
  echo "installing the CLIs into $agents" >&2
  npm install --prefix "$agents" --no-save --no-audit --no-fund --loglevel=error "$@" > "$agents/npm.log" 2>&1 ||
    skip "npm could not download the CLIs, see $agents/npm.log"
  echo "$*" > "$agents/npm.is"
}

# --- a place of one's own ---

new_place() { # ends what runs at the old one
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
started() { # name, command...: starts it and writes its address into $address
  local port=$place/$1.port log=$place/$1.log
  shift
  "${nothing_of_ours[@]}" "$@" --port-file "$port" > "$log" 2>&1 &
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

start_api() { # script: the failing API
  printf '%s\n' "$1" > "$place/script.toml"
  started api "$faults" serve --script "$place/script.toml" --log "$place/requests.jsonl"
}

in_project() { # variable=value... command...
  (cd "$place/project" && exec "${nothing_of_ours[@]}" "$@")
}

# Codex takes its endpoint and its retries from a file only.
configure_codex() { # base URL, or nothing where the built-in provider is wanted; further lines for the provider
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
  # A provider of the user's own takes its key from the environment; the built-in one takes it from here.
  [[ -n ${1:-} ]] || echo '{"OPENAI_API_KEY":"made-up"}' > "$place/home/.codex/auth.json"
}

agent_command() { # agent, more arguments...: into $command
  case $1 in
    claude) command=("$claude" -p "Say hello") ;;
    codex) command=("$codex" exec --skip-git-repo-check "Say hello") ;;
    gemini) command=("$gemini" --skip-trust -m gemini-3-pro -p "Say hello") ;;
  esac
  command+=("${@:2}")
}

# --- what came of it; whoever runs something leaves its exit code in $code ---

code=

replies() { # what the API answered, such as "rate_limit,overloaded,answer"
  [[ -f $place/requests.jsonl ]] || return 0
  grep -o '"reply":"[a-z_]*"' "$place/requests.jsonl" | cut -d'"' -f4 | paste -sd, -
}

answered() { # the problem, if the answer did not arrive
  if [[ $code != 0 ]]; then
    echo "exit code $code instead of 0"
  elif ! grep -q "Hello from the script" "$place/out"; then
    echo "no answer on standard output"
  fi
}

first() { # the first of some problems
  local problem
  for problem in "$@"; do
    if [[ -n $problem ]]; then echo "$problem" && return; fi
  done
}
