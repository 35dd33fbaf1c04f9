#!/usr/bin/env python3
"""Compares every client with and without unstuck under the same faults. Fails if a client is worse with unstuck.

A client is worse if only the bare one got its answer, if the wrapped one reports success without the answer or never ends, if
it sends 2 or more requests more than the bare client while that one ran, or if both got the answer and the wrapped one took much
longer (TIME_FACTOR and TIME_MARGIN). If a fault never ends, the wrapped client may still be waiting at the cap, provided it
shows a deadline. The API is `unstuck faults serve` on this machine; network access is
limited to downloading the agents with npm.
"""

import argparse
import concurrent.futures
import dataclasses
import datetime
import random
import re
import socket
import subprocess
import sys
import threading
import time

from agent_clients import ANSWER, ROOT, Agents, NotRun, Place, binary, run

ALWAYS = f"""
[[step]]
answer = {{ text = "{ANSWER}" }}
times = "always"
"""


# Matches a deadline in unstuck's messages.
DEADLINE = re.compile(r"for at most \d|waiting up to \d|gives up at \d|for \d[^,;()]* more|\(\d[^()]* of \d[^()]*\)")
# Two clients under the same fault never take exactly the same time: their backoff has jitter of about a quarter, and starting
# an agent on a busy machine takes some seconds more or less. A lost minute is more than that for all faults of up to 3 minutes.
TIME_FACTOR = 1.25
TIME_MARGIN = 15
# Files with unstuck's messages: standard error of a run, and the gateway's log.
TELLS = ["err", "gateway.log"]


def failing_for(seconds, fault):
    """Returns a script that fails all requests for some seconds, then answers."""
    return f"""
[mix]
failures = 0.0
answer = {{ text = "{ANSWER}" }}
[[mix.fault]]
{fault}
[[phase]]
from = "0s"
for = "{max(1, round(seconds))}s"
failures = 1.0
"""


def cut_streams(scale):
    """Returns a script that breaks three streams at random positions; the seed makes them the same for all clients."""
    places = random.Random(11)
    cut = lambda: f'cut_at = {{ after = {places.randint(3, 18)}, by = "{places.choice(["reset", "close", "end"])}" }}'
    steps = "".join(f"[[step]]\nwhen = {{ stream = true }}\n{cut()}\n" for _ in range(3))
    text = "word " * 30 + ANSWER
    return f"""
{steps}
[[step]]
answer = {{ text = "{text}" }}
times = "always"
[pace]
chunks = 20
between = "20ms"
"""


def usage_limit(scale):
    # Agents report the minute of a reset but not the second, so the reset is a full minute.
    now = time.time()
    reset = (int(now + 25) // 60 + 1) * 60
    moment = datetime.datetime.fromtimestamp(reset, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f'[[step]]\nusage_limit = {{ resets_at = "{moment}", holds = true }}\n' + ALWAYS


def slow_drip(scale):
    text = "word " * 20 + ANSWER
    return f"""
[[step]]
answer = {{ text = "{text}" }}
times = "always"
[pace]
first_byte = "1s"
chunks = 20
between = "{max(20, round(3000 * scale))}ms"
"""


@dataclasses.dataclass
class Row:
    name: str
    # Function from scale to the API's script; None if there is no API.
    script: object
    # Seconds until the API listens.
    opens_after: float = 0
    # The fault never ends; the wrapped client gets a short limit for its retries.
    never_recovers: bool = False
    quick: bool = False
    # Client timeout for one reply, in seconds.
    timeout: float = 0


ROWS = [
    Row("529 for 60 s", lambda s: failing_for(60 * s, "overloaded = {}"), quick=True),
    Row("refused for 60 s", lambda s: ALWAYS, opens_after=60, quick=True),
    Row("503 for 5 min", lambda s: failing_for(300 * s, "status = { code = 503 }")),
    Row("streams cut", cut_streams, quick=True),
    Row("429 retry-after", lambda s: "[[step]]\nrate_limit = { retry_after = 3 }\ntimes = 2\n" + ALWAYS, quick=True),
    Row("429 no wait", lambda s: "[[step]]\nrate_limit = {}\ntimes = 3\n" + ALWAYS, quick=True),
    Row("usage limit", usage_limit),
    Row("black hole", lambda s: "[[step]]\nhang = {}\n" + ALWAYS, timeout=60),
    Row("slow drip", slow_drip),
    Row("no DNS", None, never_recovers=True),
]


@dataclasses.dataclass
class Result:
    code: object
    seconds: float
    moments: list
    answered: bool
    # unstuck showed a deadline.
    tells_deadline: bool
    folder: str

    @property
    def rank(self):
        if self.code == 0:
            return 3 if self.answered else 0
        return 1 if self.code is None and not self.tells_deadline else 2

    def requests_before(self, seconds):
        return sum(1 for moment in self.moments if moment <= seconds)


class Runner:
    def __init__(self, args):
        self.args = args
        self.unstuck = binary(args.unstuck)
        self.agents = Agents()
        help_text = subprocess.run([self.unstuck, "exec", "--help"], capture_output=True, text=True).stdout
        self.can_keep_trying = "--keep-trying" in help_text
        self.places = []

    def command(self, client, url, place, wrapped, row):
        """Returns the command of a client and its environment variables."""
        env = {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_API_KEY": "made-up"}
        if row.timeout:
            seconds = max(10, row.timeout * self.args.scale)
            env["API_TIMEOUT_MS"] = str(int(seconds * 1000))
            env["SDK_CLIENT_TIMEOUT"] = str(seconds)
        if client == "claude":
            command = ["claude", "--model", "claude-sonnet-4-5", "-p", "Say hello"]
            if row.name == "usage limit":
                del env["ANTHROPIC_API_KEY"]
                env["CLAUDE_CODE_OAUTH_TOKEN"] = "made-up"
        elif client == "codex":
            command = ["codex", "exec", "--skip-git-repo-check", "Say hello"]
            place.configure_codex(None if wrapped else url)
        else:
            command = [sys.executable, ROOT / "tests/sdk_client.py"]
        if not wrapped:
            return command, env
        if client == "script-serve":
            gateway = place.serve(
                "gateway", self.unstuck, "serve", "--listen", "127.0.0.1:0", "--upstream", f"anthropic={url}"
            )
            return command, {**env, "ANTHROPIC_BASE_URL": f"{gateway}/anthropic"}
        limit = []
        if row.never_recovers and self.can_keep_trying:
            limit = ["--keep-trying", f"{max(5, round(120 * self.args.scale))}s"]
        return [self.unstuck, "exec", *limit, "--", *command], env

    def measure(self, row, client, wrapped):
        place = Place(self.agents)
        scale = self.args.scale
        timer = None
        try:
            if row.script is None:
                for name in ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"]:
                    del place.env[name]
                url = "http://api.unstuck-side-by-side.invalid"
            elif row.opens_after:
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    port = free.getsockname()[1]
                url = f"http://127.0.0.1:{port}"
                start = lambda: place.faults(self.unstuck, row.script(scale), f"127.0.0.1:{port}")
                timer = threading.Timer(row.opens_after * scale, start)
            else:
                url = place.faults(self.unstuck, row.script(scale))
            command, env = self.command(client, url, place, wrapped, row)
            if timer:
                timer.start()
            code, begun, seconds = run(command, place, env, self.args.cap)
            moments = [at - begun for at, _ in place.requests()]
            answered = ANSWER in (place.folder / "out").read_text(errors="replace")
            told = "".join(file.read_text(errors="replace") for file in place.folder.glob("*") if file.name in TELLS)
            tells_deadline = row.never_recovers and DEADLINE.search(told) is not None
            return Result(code, seconds, moments, answered, tells_deadline, str(place.folder))
        finally:
            if timer:
                timer.cancel()
                timer.join()
            place.close(keep=self.args.keep)


def verdict(bare, wrapped):
    """Returns why the wrapped client is worse, or None."""
    if wrapped.rank == 0:
        return "reports success without the answer"
    if wrapped.rank == 1 and bare.rank != 1:
        return "never ends"
    if wrapped.rank < bare.rank and bare.rank == 3:
        return "only the bare client got its answer"
    # A client that fails later than the bare one has only tried for longer.
    most = TIME_FACTOR * bare.seconds + TIME_MARGIN
    if wrapped.rank == bare.rank == 3 and wrapped.seconds > most:
        return f"answer after {wrapped.seconds:.0f} s, the bare client's after {bare.seconds:.0f} s"
    if wrapped.rank == bare.rank:
        meanwhile, allowed = wrapped.requests_before(bare.seconds), len(bare.moments) + 1
        if meanwhile > allowed:
            return f"{meanwhile} requests in {bare.seconds:.0f} s, {len(bare.moments)} by the bare client"
    return None


def shown(result):
    code = "cap" if result.code is None else str(result.code)
    answer = "answer" if result.answered else "-"
    return f"{code:>4} {answer:<7} {result.seconds:6.1f} s {len(result.moments):>4}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unstuck", help="the program (target/release/unstuck, or UNSTUCK_BIN)")
    parser.add_argument("--quick", action="store_true", help="fewer rows, scale 0.2; for development")
    parser.add_argument("--scale", type=float, help="factor for the durations of the faults (1)")
    parser.add_argument("--rows", default="", help="only rows whose name matches this regular expression")
    parser.add_argument("--clients", default="claude,codex,script,script-serve")
    parser.add_argument("--cap", type=float, default=900, help="time limit of a run, in seconds (900)")
    parser.add_argument("--jobs", type=int, default=6, help="parallel runs (6)")
    parser.add_argument("--keep", action="store_true", help="keep the directories of the runs")
    args = parser.parse_args()
    if args.scale is None:
        args.scale = 0.2 if args.quick else 1.0
    runner = Runner(args)
    rows = [row for row in ROWS if re.search(args.rows, row.name) and (row.quick or not args.quick)]
    clients = args.clients.split(",")
    if not runner.can_keep_trying:
        rows = [row for row in rows if not row.never_recovers]
        print("no DNS: not run: unstuck has no --keep-trying")
    try:
        runner.agents.install()
    except NotRun as why:
        print(f"claude, codex: not run: {why}")
        clients = [client for client in clients if client.startswith("script")]
    wanted = [(row, client) for row in rows for client in clients]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = [(pool.submit(runner.measure, *one, False), pool.submit(runner.measure, *one, True)) for one in wanted]
        results = [(bare.result(), wrapped.result()) for bare, wrapped in runs]
    head = "code answer   seconds reqs"
    print(f"\n{'fault':<17} {'client':<13} {'bare':<27}   {'wrapped':<27}\n{'':<31} {head:<27}   {head}")
    worse = 0
    for (row, client), (bare, wrapped) in zip(wanted, results):
        why = verdict(bare, wrapped)
        worse += why is not None
        note = f"   WORSE: {why}" if why else ""
        print(f"{row.name:<17} {client:<13} {shown(bare)}   {shown(wrapped)}{note}")
        if args.keep:
            print(f"{'':<31} {bare.folder}   {wrapped.folder}")
    print(f"\n{len(wanted)} rows, {worse} worse with unstuck")
    sys.exit(1 if worse else 0)


main()
