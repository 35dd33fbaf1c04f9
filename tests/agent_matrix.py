#!/usr/bin/env python3
"""Tests every real agent CLI under every fault: alone, under `unstuck exec`, in `unstuck run`, and through a shared `unstuck serve`.

The task of each run is one tool call and then an answer, to detect lost conversations: the API answers only requests that
contain the tool's result. A cell has the outcome, the number of requests to the model, and the duration in seconds.

  ok        exit code 0 and the answer            ok×2      the whole task was answered twice
  ok(lost)  the same, but the agent started over  FALSE     exit code 0 without the answer
  asked     an expected escalation                ASKED     an escalation although the fault is transient
  waits     still waiting, with a deadline shown  HANG      still running, with no deadline shown
  failN     exit code N                           storm     2 or more requests more than alone, in the same time

Uppercase outcomes, ok×2, ok(lost) and storm are failures. So is failN, unless the agent also fails alone and cannot be
restarted (serve). agent_matrix_alone.json has the results of the agents alone, measured with --modes alone --record.
The API is `unstuck faults serve` on this machine; network access is limited to installing the agents.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from agent_clients import AGENTS, ANSWER, NOT_RUN, ROOT, Agents, NotRun, Place, binary, finish, start

TASK = "Read note.txt with one shell command, then answer."
NOTE = "The sky is green today."
RECORDED = ROOT / "tests/agent_matrix_alone.json"
MODES = ["alone", "exec", "run", "serve"]
# Long enough that a truncated half lacks the end. Not repetitive, because agents mistake repeated words for a loop.
TEXT = (
    "The note was read as asked: it describes a sky whose colour differs from what most people would expect on an "
    "ordinary morning, although nobody outside has complained yet, and no further steps seem to be needed. " + ANSWER
)
# Matches a deadline in unstuck's messages.
DEADLINE = re.compile(r"for at most \d|waiting up to \d|gives up at \d|for \d[^,;()]* more|\(\d[^()]* of \d[^()]*\)|until \d")


# --- agents ---


@dataclasses.dataclass(frozen=True)
class Agent:
    """How to run one agent."""

    # Command line; the prompt is appended.
    command: tuple
    # Arguments and other keys of the role in unstuck.toml.
    args: tuple = ()
    role: str = ""
    # Environment variables; {url} is the API's base URL.
    env: dict = dataclasses.field(default_factory=dict)
    # Base path at the API and at a gateway.
    paths: tuple = ("/v1", "/openai/v1")
    # Name of the shell tool, of its argument, and the text in a request body that has a tool result.
    tool: str = ""
    argument: str = "command"
    result: str = ""
    # API protocol.
    protocol: str = "openai"
    # Identifies requests outside the task, such as for a title: "model" or "prompt", and a substring of it.
    aside: tuple = ()


RESPONSES, CHAT = '"function_call_output"', '"role":"tool"'
OPENCODE = '{{"autoupdate":false,"provider":{{"openai":{{"options":{{"baseURL":"{url}"}}}}}}}}'
HOW = {
    "claude": Agent(
        ("claude", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash", "-p"),
        role='model = "claude-sonnet-4-5"\nallowed_tools = ["Bash"]',
        env={"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "made-up"},
        paths=("", "/anthropic"),
        tool="Bash",
        result='"tool_result"',
        protocol="anthropic",
    ),
    "codex": Agent(
        ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        args=("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        env={"OPENAI_BASE_URL": "{url}"},
        tool="exec_command",
        argument="cmd",
        result=RESPONSES,
    ),
    "gemini": Agent(
        ("gemini", "--skip-trust", "--yolo", "-m", "gemini-3-pro", "-p"),
        args=("--skip-trust", "--yolo"),
        role='model = "gemini-3-pro"',
        env={"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "made-up"},
        paths=("", "/gemini"),
        tool="run_shell_command",
        result='"functionResponse"',
        protocol="gemini",
    ),
    "opencode": Agent(
        ("opencode", "run", "-m", "openai/gpt-4o"),
        role='model = "openai/gpt-4o"',
        env={"OPENCODE_CONFIG_CONTENT": OPENCODE, "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        tool="bash",
        result=RESPONSES,
        aside=("model", "nano"),
    ),
    "goose": Agent(
        ("goose", "run", "--provider", "openai", "--model", "gpt-4o", "--with-builtin", "developer", "-t"),
        args=("--provider", "openai", "--with-builtin", "developer"),
        role='model = "gpt-4o"',
        env={
            "OPENAI_HOST": "{url}",
            "GOOSE_MODE": "auto",
            "GOOSE_TELEMETRY_ENABLED": "false",
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_DISABLE_SESSION_NAMING": "true",
        },
        paths=("", "/openai"),
        tool="shell",
        result=CHAT,
    ),
    "aider": Agent(
        ("aider", "--model", "openai/gpt-4o", "--yes-always", "--no-git", "--no-check-update", "--no-show-release-notes")
        + ("--analytics-disable", "--no-pretty", "--message"),
        args=("--no-git", "--analytics-disable"),
        role='model = "openai/gpt-4o"',
        env={"OPENAI_API_BASE": "{url}"},
    ),
    "qwen": Agent(
        ("qwen", "--auth-type", "openai", "-m", "qwen3-coder-plus", "-y", "-p"),
        args=("--auth-type", "openai", "-y"),
        role='model = "qwen3-coder-plus"',
        env={"OPENAI_BASE_URL": "{url}"},
        tool="run_shell_command",
        result=CHAT,
        aside=("prompt", "managed memory index"),
    ),
    "copilot": Agent(
        ("copilot", "--allow-all-tools", "--no-auto-update", "-p"),
        args=("--allow-all-tools", "--no-auto-update"),
        env={
            "COPILOT_PROVIDER_BASE_URL": "{url}",
            "COPILOT_PROVIDER_API_KEY": "made-up",
            "COPILOT_MODEL": "gpt-4o",
        },
        tool="bash",
        result=CHAT,
    ),
}


# --- faults ---


@dataclasses.dataclass(frozen=True)
class Fault:
    """Behavior of the API. A fault starts with the request after the tool call, or with the first one (`first`)."""

    reply: str = ""
    # Number of failing requests; None is unlimited.
    times: int | None = None
    first: bool = False
    # Seconds in which every request fails.
    lasts: int = 0
    # Seconds until the API listens; inf is never.
    opens_after: float = 0
    # The model calls the same tool forever, with this command.
    repeats: str = ""
    # Gateway timeouts in seconds: `silence` for unresponsive APIs, `hold` (client_wait) for limits longer than a client can wait.
    silence: int = 0
    hold: int = 0
    # Kills unstuck while it waits, then resumes.
    kill: bool = False
    # Time limit in seconds for the agent alone.
    cap_alone: float = 300
    # The remedy is a smaller or a new conversation.
    shrinks: bool = False

    @property
    def recovers(self):
        return bool(self.times or self.lasts or 0 < self.opens_after < float("inf"))


LIMIT = 'usage_limit = { resets_in = "20s", holds = true }'
FAULTS = {
    "429ra": Fault("rate_limit = { retry_after = 3 }", 2),
    "limit": Fault(LIMIT, 1),
    "limitcut": Fault(LIMIT, 1, hold=5),
    "brown": Fault("overloaded = {}", lasts=25),
    "refuseup": Fault(opens_after=20),
    "hole1": Fault("hang = {}", 1, silence=8, cap_alone=60),
    "cut": Fault("cut = {}", 1),
    "stall": Fault("stall_at = { after = 6 }", 1, silence=8, cap_alone=60),
    "badjson": Fault("bad_chunk = { after = 6 }", 1),
    "html": Fault("html = { status = 200 }", 1),
    "context1": Fault("context_limit = {}", 1, shrinks=True),
    "empty": Fault("empty = {}", 2),
    "kill": Fault(LIMIT, 1, kill=True),
    "500": Fault("server_error = {}"),
    "key": Fault("auth = {}", first=True),
    "refused": Fault(opens_after=float("inf"), cap_alone=60),
    "hole": Fault("hang = {}", silence=8, cap_alone=60),
    "cutall": Fault("cut = {}"),
    "context": Fault("context_limit = {}", shrinks=True, cap_alone=60),
    "loop": Fault(repeats="cat note.txt", cap_alone=30),
    "loopfail": Fault(repeats="cat no-such-file", cap_alone=30),
    "quota": Fault("quota = {}"),
    "refusal": Fault("refusal = {}"),
    "model": Fault("model_not_found = {}", first=True),
}
# For ./check full: all faults under exec; in the other modes, those that failed before.
MOST_LIKELY = {
    "run": ["429ra", "limitcut", "brown", "cut", "stall", "empty", "kill", "500", "key", "loop"],
    "serve": ["429ra", "limit", "brown", "refuseup", "cut", "stall", "empty", "500", "key", "context", "loop", "quota"],
}


def script(agent, fault):
    """Returns the API's fault script."""
    call = lambda command: f'tool_call = {{ name = "{agent.tool}", input = {{ {agent.argument} = "{command}", description = "read it" }} }}'
    aside = ""
    if agent.aside:
        where, part = agent.aside
        aside = f'[[step]]\nwhen = {{ {where} = "{part}" }}\nanswer = {{ text = "Nothing" }}\ntimes = "always"\n'
    if fault.repeats:
        return aside + f'[[step]]\n{call(fault.repeats)}\ntimes = "always"\n'
    with_result = f"when = {{ body = '{agent.result}' }}\n" if agent.tool else ""
    meets = "" if fault.first else with_result
    steps = aside
    if fault.reply and not fault.lasts:
        times = f'"always"' if fault.times is None else fault.times
        steps += f"[[step]]\n{meets}{fault.reply}\ntimes = {times}\n"
    if agent.tool:
        steps += f"[[step]]\nwhen = {{ body_lacks = '{agent.result}' }}\n{call('cat note.txt')}\ntimes = \"always\"\n"
    answer = f'answer = {{ text = "{TEXT}" }}\n'
    if fault.lasts:
        steps += f'[mix]\nfailures = 0.0\n{answer}[[mix.fault]]\n{fault.reply}\n'
        steps += f'[[phase]]\nfrom = "0s"\nfor = "{fault.lasts}s"\nfailures = 1.0\n'
    else:
        steps += f'[[step]]\n{answer}times = "always"\n'
    return steps + "[pace]\nchunks = 20\n"


# --- one cell ---


@dataclasses.dataclass
class Cell:
    agent: str
    mode: str
    fault: str
    outcome: str
    requests: int
    seconds: float
    # Time of the last request, in seconds after the first one.
    last: float
    # Times of all requests, likewise; not in the recorded results.
    moments: list = dataclasses.field(default_factory=list)
    # Reason for a failure, or None.
    bad: str | None = None
    folder: str = ""

    def early(self, alone):
        """Returns the number of requests in the time in which the agent alone sent its requests."""
        return sum(1 for moment in self.moments if moment <= alone.last + 0.5)

    def __str__(self):
        if self.outcome == "-":
            return "-"
        return f"{self.outcome} {self.requests}/{self.seconds:.0f}s"


class Matrix:
    def __init__(self, args):
        self.args = args
        self.unstuck = binary(args.unstuck)
        self.agents = Agents()

    def configure(self, agent, fault, place, url):
        """Writes the user configuration of unstuck."""
        path = agent.paths[0]
        base = f"{url}{path}" + ("/v1" if agent.protocol == "openai" and not path else "")
        lines = [f'[gateway.upstreams]\n{agent.protocol} = "{base}"']
        seconds = {}
        if fault.silence:
            seconds = dict.fromkeys(["response_headers", "full_response", "first_content", "stall"], fault.silence)
        if fault.hold:
            seconds["client_wait"] = fault.hold
        lines.append("[gateway.timeouts]\n" + "\n".join(f'{name} = "{value}s"' for name, value in seconds.items()))
        if not fault.recovers:
            lines.append(f'[policy]\ntemplate = "resilient"\ngiveUpAfter = "{self.args.keep_trying}"')
        (place.folder / "config/unstuck/config.toml").write_text("\n".join(lines) + "\n")

    def command(self, name, mode, fault, place, url):
        """Returns the command of a run and its environment variables."""
        agent = HOW[name]
        self.configure(agent, fault, place, url)
        base = url + agent.paths[0]
        if mode == "serve":
            gateway = place.serve("gateway", self.unstuck, "serve", "--listen", "127.0.0.1:0")
            base = gateway + agent.paths[1]
        env = {key: value.format(url=base) for key, value in agent.env.items()}
        if name == "codex":
            place.configure_codex(base.removesuffix("/v1") if mode in ("alone", "serve") else None)
        if name == "opencode" and mode in ("exec", "run"):
            del env["OPENCODE_CONFIG_CONTENT"]
        if name == "gemini":
            settings = place.folder / "home/.gemini/settings.json"
            settings.parent.mkdir()
            off = {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}}
            settings.write_text(json.dumps({**off, "security": {"auth": {"selectedType": "gemini-api-key"}}}))
        if mode == "run":
            (place.project / "unstuck.toml").write_text(
                f'[[role]]\nid = "worker"\nagent = "{name}"\nprompt = "{TASK}"\nargs = {json.dumps(agent.args)}\n{agent.role}\n'
            )
        limit = [] if fault.recovers else ["--keep-trying", self.args.keep_trying]
        command = [*agent.command, TASK]
        if mode == "exec":
            command = [self.unstuck, "exec", *limit, "--", *command]
        elif mode == "run":
            command = [self.unstuck, "run", *limit]
        return command, env

    def measure(self, name, mode, fault_name):
        fault, agent = FAULTS[fault_name], HOW[name]
        place = Place(self.agents)
        timer = None
        try:
            (place.project / "note.txt").write_text(NOTE + "\n")
            subprocess.run(["git", "init", "-q", "."], cwd=place.project, check=True)
            text = script(agent, fault)
            if fault.opens_after:
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    port = free.getsockname()[1]
                url = f"http://127.0.0.1:{port}"
                if fault.recovers:
                    timer = threading.Timer(fault.opens_after, lambda: place.faults(self.unstuck, text, f"127.0.0.1:{port}"))
            else:
                url = place.faults(self.unstuck, text)
            command, env = self.command(name, mode, fault, place, url)
            if timer:
                timer.start()
            cap = min(fault.cap_alone, self.args.cap_alone) if mode == "alone" else self.args.cap
            begun = time.monotonic()
            process = start(command, place, env)
            if fault.kill:
                self.kill(process, place)
                process = start([self.unstuck, "resume"], place, env, append=True)
            code = finish(process, cap)
            return self.read(name, mode, fault_name, place, code, time.monotonic() - begun)
        finally:
            if timer:
                timer.cancel()
                timer.join()
            place.close(keep=self.args.keep)

    def kill(self, process, place):
        """Kills unstuck with SIGKILL while it waits, two seconds after the usage limit was reached."""
        deadline = time.monotonic() + 60
        met = lambda: [at for at, reply in place.requests() if reply == "usage_limit" and at + 2 < time.time()]
        while not met():
            if process.poll() is not None or time.monotonic() > deadline:
                return
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def read(self, name, mode, fault_name, place, code, seconds):
        """Returns the result of a run."""
        fault, agent = FAULTS[fault_name], HOW[name]
        is_aside = lambda call: agent.aside and agent.aside[1] in call[agent.aside[0]]
        calls = [call for call in place.calls() if not is_aside(call)]
        moments = [call["at"] - calls[0]["at"] for call in calls]
        replies = [call["reply"] for call in calls]
        output = place.folder / "out"
        if mode == "run":
            outputs = list(place.project.glob(".unstuck/runs/*/roles/worker/output.md"))
            output = outputs[0] if outputs else None
        answered = output is not None and ANSWER in output.read_text(errors="replace")
        texts = "".join((place.folder / file).read_text(errors="replace") for file in ["err", "out"])
        gateway = place.folder / "gateway.log"
        if gateway.exists():
            texts += gateway.read_text(errors="replace")
        last = moments[-1] if moments else 0
        cell = Cell(name, mode, fault_name, "", len(calls), seconds, last, moments, folder=str(place.folder))
        if code == 0 and answered:
            lost = replies.count("tool_call") > 1 and not fault.shrinks
            twice = replies.count("answer") > 1 and not fault.shrinks
            cell.outcome = "ok×2" if twice else "ok(lost)" if lost else "ok"
        elif code == 0:
            cell.outcome = "FALSE"
        elif code == 3 and mode in ("exec", "run"):
            cell.outcome = "ASKED" if fault.recovers else "asked"
        elif code is None:
            told = not fault.recovers and mode != "alone" and (DEADLINE.search(texts) or self.open_questions(place))
            cell.outcome = "waits" if told else "HANG"
        else:
            cell.outcome = f"fail{code}"
        return cell

    def open_questions(self, place):
        done = subprocess.run([self.unstuck, "inbox", "--json"], cwd=place.project, env=place.env, capture_output=True, text=True)
        return done.returncode == 0 and done.stdout.strip() not in ("", "[]")



def judge(cell, alone):
    """Returns the reason if a cell is a failure. `serve` cannot restart an agent or change its exit code."""
    fault, outcome = FAULTS[cell.fault], cell.outcome
    survives_alone = alone is None or alone.outcome == "ok"
    if cell.mode == "alone":
        return None
    if cell.mode == "serve" and outcome == "FALSE" and alone and alone.outcome in ("FALSE", "HANG"):
        return None
    if cell.mode == "serve" and outcome.startswith("fail") and not (fault.recovers and survives_alone):
        return None
    if outcome not in ("ok", "asked", "waits"):
        return outcome
    # Not comparable: an agent that never ends sends more requests anyway, refused connections are not counted, and if a smaller
    # conversation is the remedy, the agent is restarted at once.
    if alone is None or alone.outcome == "HANG" or fault.opens_after or fault.shrinks:
        return None
    early = cell.early(alone)
    if early > alone.requests + 1:
        return f"storm: {early} requests in {alone.last:.0f} s, {alone.requests} alone"
    return None


def recorded():
    """Returns the recorded results of the agents alone, for the current versions."""
    if not RECORDED.exists():
        return {}
    data = json.loads(RECORDED.read_text())
    return {
        (name, fault): Cell(name, "alone", fault, **figures)
        for name, cells in data["cells"].items()
        if data["versions"].get(name) == AGENTS[name].version
        for fault, figures in cells.items()
    }


def record(cells):
    known = recorded()
    known.update({(cell.agent, cell.fault): cell for cell in cells})
    data = {"versions": {name: client.version for name, client in AGENTS.items()}, "cells": {}}
    for name in AGENTS:
        rows = {fault: known[name, fault] for fault in FAULTS if (name, fault) in known}
        data["cells"][name] = {
            fault: {"outcome": cell.outcome, "requests": cell.requests, "seconds": round(cell.seconds), "last": round(cell.last, 1)}
            for fault, cell in rows.items()
        }
    text = json.dumps(data, indent=1)
    # One line per cell.
    RECORDED.write_text(re.sub(r"\{\n\s+(\"outcome\"[^}]*?)\n\s+\}", lambda m: "{" + re.sub(r"\s*\n\s*", " ", m[1]) + "}", text) + "\n")


def tables(cells, names, faults):
    for mode in MODES:
        rows = {(cell.fault, cell.agent): cell for cell in cells if cell.mode == mode}
        if not rows:
            continue
        print(f"\n### {mode}\n| fault | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
        for fault in faults:
            line = [rows.get((fault, name)) for name in names]
            if any(line):
                print(f"| {fault} | " + " | ".join(mark(cell) if cell else "-" for cell in line) + " |")


def mark(cell):
    return f"**{cell}**" if cell.bad else str(cell)


def chosen(args):
    """Returns the selected cells, agents and faults."""
    pick = lambda given, known: [one for one in known if not given or one in given.split(",")]
    names, modes, faults = pick(args.agents, AGENTS), pick(args.modes, MODES), pick(args.faults, FAULTS)
    explicit = args.all or args.faults
    wanted = []
    for mode in modes:
        if mode == "alone" and not (args.all or args.modes):
            continue
        for fault in faults:
            if mode in MOST_LIKELY and not explicit and fault not in MOST_LIKELY[mode]:
                continue
            if fault in ("kill", "limitcut") and mode in ("alone", "serve"):
                continue
            for name in names:
                if HOW[name].tool or not FAULTS[fault].repeats:
                    wanted.append((name, mode, fault))
    return wanted, names, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unstuck", help="the program (target/release/unstuck, or UNSTUCK_BIN)")
    parser.add_argument("--all", action="store_true", help="every agent, mode and fault; also measures the agents alone")
    parser.add_argument("--agents", help="comma-separated list")
    parser.add_argument("--modes", help="comma-separated list of alone, exec, run, serve")
    parser.add_argument("--faults", help="comma-separated list")
    parser.add_argument("--jobs", type=int, default=8, help="parallel runs (8); most of them wait")
    parser.add_argument("--cap", type=float, default=200, help="time limit of a run, in seconds (200)")
    parser.add_argument("--cap-alone", type=float, default=300, help="time limit of an agent alone, in seconds (300)")
    parser.add_argument("--keep-trying", default="2m", help="giveUpAfter for permanent faults (2m)")
    parser.add_argument("--record", action="store_true", help="write the results of the agents alone to agent_matrix_alone.json")
    parser.add_argument("--keep", action="store_true", help="keep the directories of the runs")
    args = parser.parse_args()
    matrix = Matrix(args)
    wanted, names, faults = chosen(args)
    ready = []
    for name in names:
        try:
            matrix.agents.install([name])
            ready.append(name)
        except NotRun as why:
            print(f"{name}: not run: {why}", flush=True)
    if not ready:
        sys.exit(NOT_RUN)
    wanted = [one for one in wanted if one[0] in ready]
    alone = recorded()
    # Longest first, to minimize the total time.
    wanted.sort(key=lambda one: (one[1] != "alone", FAULTS[one[2]].recovers))
    print(f"{len(wanted)} cells with {matrix.unstuck}", flush=True)
    cells, begun = [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(matrix.measure, *one) for one in wanted]):
            cell = done.result()
            cells.append(cell)
            if cell.mode == "alone":
                alone[cell.agent, cell.fault] = cell
            note = f"  {cell.folder}" if args.keep else ""
            print(f"{time.monotonic() - begun:5.0f}s {len(cells):>3}/{len(wanted)} {cell.agent:<9}{cell.mode:<6}{cell.fault:<9} {cell}{note}", flush=True)
    if args.record:
        record([cell for cell in cells if cell.mode == "alone"])
    same = {"limitcut": "limit", "kill": "limit"}
    for cell in cells:
        cell.bad = judge(cell, alone.get((cell.agent, same.get(cell.fault, cell.fault))))
    tables(cells, ready, faults)
    bad = [cell for cell in cells if cell.bad]
    print(f"\n{len(cells)} cells in {time.monotonic() - begun:.0f} s, {len(bad)} failed")
    for cell in bad:
        print(f"  {cell.agent} {cell.mode} {cell.fault}: {cell.bad} ({cell.requests} requests, {cell.seconds:.0f} s)")
    sys.exit(1 if bad else 0)


main()
