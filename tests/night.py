#!/usr/bin/env python3
"""A night of faults: a pipeline of two agents must complete despite many failures, without human input.

Claude Code plans, Codex builds. The planner gets a rate limit, a usage limit during which unstuck itself is killed with
SIGKILL, and a brownout of 30 s; the builder gets a rate limit, a broken stream and a brownout of 30 s; then its check fails
because node_modules is broken. Fails unless the run completes under the default policy with 0 escalations.
"""

import argparse
import datetime
import glob
import json
import os
import signal
import subprocess
import sys
import time

from agent_clients import ANSWER, NOT_RUN, Agents, NotRun, Place, binary, run

CONFIG = """
[run]
task = "Build a house"

[recovery]
auto_approve = ["npm ci", "npm install", "rm -rf node_modules && npm ci"]
cooldown_seconds = 1

[[role]]
id = "planner"
agent = "claude"
model = "claude-sonnet-4-5"
prompt = "Plan this: {{ task }}"
expect.sections = ["# Plan"]

[[role]]
id = "builder"
agent = "codex"
needs = ["planner"]
prompt = "Build by this plan: {{ outputs.planner }}"
expect.check = "node test.js"
args = ["--skip-git-repo-check"]
"""


def answers(text, brownout_until):
    """Returns a script that is overloaded for some seconds after the first request, then answers."""
    return f"""
[mix]
failures = 0.0
answer = {{ text = "{text}" }}
[[mix.fault]]
overloaded = {{}}
[[phase]]
from = "0s"
for = "{brownout_until}s"
failures = 1.0
"""


def broken_packages(project):
    """Creates a project whose check fails because an installed package is broken; reinstalling needs no network."""
    (project / "vendor/greet").mkdir(parents=True)
    (project / "vendor/greet/package.json").write_text('{"name":"greet","version":"1.0.0","main":"index.js"}')
    (project / "vendor/greet/index.js").write_text("module.exports = () => 'hello'\n")
    (project / "package.json").write_text('{"name":"house","version":"1.0.0","dependencies":{"greet":"file:vendor/greet"}}')
    (project / "test.js").write_text("const greet = require('greet')\nif (greet() !== 'hello') process.exit(1)\n")
    subprocess.run(["npm", "install", "--offline", "--silent"], cwd=project, check=True)
    link = project / "node_modules/greet"
    link.unlink()
    link.symlink_to("../vendor/gone")


def wait_for(what, holds, seconds=120):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"error: timed out after {seconds} s: {what}")
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unstuck", help="the program (target/release/unstuck, or UNSTUCK_BIN)")
    parser.add_argument("--brownout", type=int, default=30, help="seconds of each brownout (30)")
    parser.add_argument("--keep", action="store_true", help="keep the directory")
    args = parser.parse_args()
    unstuck = binary(args.unstuck)
    agents = Agents()
    try:
        agents.install()
    except NotRun as why:
        print(f"not run: {why}")
        sys.exit(NOT_RUN)
    place = Place(agents)
    os.umask(0o077)
    try:
        night(args, unstuck, place)
    finally:
        place.close(keep=args.keep)


def night(args, unstuck, place):
    broken_packages(place.project)
    # Agents report the minute of a reset but not the second, so the reset is a full minute.
    now = int(time.time())
    reset = (now + 25) // 60 * 60 + 60
    moment = datetime.datetime.fromtimestamp(reset, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    limits = f'[[step]]\nrate_limit = {{ retry_after = 2 }}\n[[step]]\nusage_limit = {{ resets_at = "{moment}", holds = true }}\n'
    plan = answers(f"# Plan\\n{ANSWER}", reset - now + args.brownout)
    anthropic = place.faults(unstuck, limits + plan)
    builder = Place()
    breaks = "[[step]]\nrate_limit = { retry_after = 2 }\n[[step]]\nwhen = { stream = true }\ncut_at = { after = 6, by = \"reset\" }\n"
    openai = builder.faults(unstuck, breaks + answers("The roof is built", args.brownout))
    place.configure_codex(None)
    (place.project / "unstuck.toml").write_text(CONFIG)
    env = {
        "ANTHROPIC_BASE_URL": anthropic,
        "CLAUDE_CODE_OAUTH_TOKEN": "made-up",
        "OPENAI_BASE_URL": f"{openai}/v1",
    }
    for command in [["git", "init", "-q", "."], [unstuck, "trust"]]:
        subprocess.run(command, cwd=place.project, env={**place.env, **env}, check=True, capture_output=True)

    begun = time.monotonic()
    first = subprocess.Popen(
        [unstuck, "run"],
        cwd=place.project,
        env={**place.env, **env},
        stdin=subprocess.DEVNULL,
        stdout=open(place.folder / "first.out", "w"),
        stderr=open(place.folder / "first.err", "w"),
    )
    wait_for("usage limit reached", lambda: "usage_limit" in [reply for _, reply in place.requests()])
    first.send_signal(signal.SIGKILL)
    first.wait()
    code, _, _ = run([unstuck, "resume"], place, env, 900)
    seconds = time.monotonic() - begun

    events = glob.glob(str(place.project / ".unstuck/runs/*/events.jsonl"))
    lines = [json.loads(line) for file in events for line in open(file)]
    questions = [line for line in lines if line.get("event") == "recovery_escalated"]
    outputs = {role: role_output(place, role) for role in ["planner", "builder"]}
    replies = lambda one: ", ".join(reply for _, reply in one.requests())
    print(f"planner's API: {replies(place)}\nbuilder's API: {replies(builder)}")
    print(f"exit code {code} after {seconds:.0f} s, {len(questions)} requests for input, one kill -9")
    builder.close(keep=args.keep)
    problems = [
        code != 0 and f"exit code {code} instead of 0",
        questions and f"{len(questions)} requests for input: {[one.get('message') or one.get('kind') for one in questions]}",
        ANSWER not in outputs["planner"] and f"the planner wrote {outputs['planner']!r}",
        "The roof is built" not in outputs["builder"] and f"the builder wrote {outputs['builder']!r}",
        not (place.project / "node_modules/greet/index.js").exists() and "node_modules is still broken",
    ]
    problems = [problem for problem in problems if problem]
    if problems:
        print((place.folder / "err").read_text()[-3000:], file=sys.stderr)
        sys.exit("error: " + "; ".join(problems))


def role_output(place, role):
    files = glob.glob(str(place.project / f".unstuck/runs/*/roles/{role}/output.md"))
    return open(files[0]).read() if files else ""


main()
