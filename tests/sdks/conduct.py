#!/usr/bin/env python3
"""Official SDKs through `unstuck serve`, before an API that fails on purpose; called by tests/sdks.sh.

  conduct.py --unstuck FILE --faults FILE --python FILE --js FOLDER [--only WORD] [--markdown]

Each case has an API and a gateway of its own. Exit 1 if anything is not as it must be.
"""

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from cases import ALONE, CASES, problems

PATIENCE = 60
# Each client with the path of its base URL at the gateway and at the API itself.
CLIENTS = {
    "anthropic": ("/anthropic", ""),
    "chat": ("/openai/v1", "/v1"),
    "responses": ("/openai/v1", "/v1"),
    "gemini": ("/gemini", ""),
}
LANGUAGES = {"py": "Python", "js": "JavaScript"}


class Program:
    """A program that writes its port into a file once it can be asked."""

    def __init__(self, place, name, command, env):
        port = place / f"{name}.port"
        self.log = place / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, "--port-file", port], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.url = f"http://127.0.0.1:{wait_for(lambda: text_of(port).strip(), self.told)}"

    def told(self):
        return self.log.read_text(errors="replace")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)


class Sdk:
    """A program that uses the SDKs of one language."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def wish(self, **wish):
        self.process.stdin.write(json.dumps(wish) + "\n")
        return json.loads(self.process.stdout.readline())


def text_of(path):
    return path.read_text() if path.exists() else ""


def wait_for(look, told=lambda: "", patience=PATIENCE):
    until = time.monotonic() + patience
    while not (found := look()):
        if time.monotonic() > until:
            raise SystemExit(f"error: timed out after {patience} s: {told()}")
        time.sleep(0.02)
    return found


def counted(url):
    with urllib.request.urlopen(f"{url}/__faults/stats") as answer:
        return json.load(answer)


def settled(url, case):
    """What the API counted, once it has noticed who went away."""
    until = time.monotonic() + 5
    while (stats := counted(url))["abandoned"] < case.abandoned or stats["in_flight"]:
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    return stats


def calls_of(store):
    with sqlite3.connect(store) as books:
        return [outcome for (outcome,) in books.execute("SELECT outcome FROM calls ORDER BY id")]


def requests_alone(case, client, sdk, args, env):
    """How many requests the SDK sends to the same API without the gateway."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "script.toml").write_text(case.script)
        api = Program(place, "api", [args.faults, "serve", "--script", place / "script.toml"], env)
        sdk.wish(
            client=client, what=case.what, url=api.url + CLIENTS[client][1], bytes=case.bytes, patience=case.patience
        )
        requests = settled(api.url, case)["requests"]
        api.stop()
        return requests


def tried(case, client, language, sdk, args, env):
    """Plays one case and tells what each side saw."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "script.toml").write_text(case.script or "[pace]\n")
        (place / "config.toml").write_text(case.config)
        env = env | {"HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_STATE_HOME": folder}
        serve = [args.faults, "serve", "--script", place / "script.toml", "--log", place / "requests.jsonl"]
        api = Program(place, "api", serve, env)
        store = place / "store.db"
        command = [args.unstuck, "--config", place / "config.toml", "--store", store, "serve"]
        command += ["--listen", "127.0.0.1:0", *case.more]
        for upstream in (f"anthropic={api.url}", f"openai={api.url}/v1", f"gemini={api.url}"):
            command += ["--upstream", upstream]
        gateway = Program(place, "gateway", command, env)
        begun = time.monotonic()
        seen = sdk.wish(
            client=client, what=case.what, url=gateway.url + CLIENTS[client][0], bytes=case.bytes, patience=case.patience
        )
        seconds = time.monotonic() - begun
        stats = settled(api.url, case)
        gateway.stop()
        api.stop()
        requests = [json.loads(line) for line in text_of(place / "requests.jsonl").splitlines()]
        world = {
            "requests": stats["requests"],
            "abandoned": stats["abandoned"],
            "bodies": len({request["body_sha256"] for request in requests}),
            "calls": calls_of(store),
        }
        if case.requests == ALONE:
            world["alone"] = requests_alone(case, client, sdk, args, env)
        found = problems(case, client, language, seen, world)
        if found:
            print(f"--- {client}, {LANGUAGES[language]}, {case.name}: {seen}\n{world}\n{gateway.told()}", file=sys.stderr)
        return seen, world, seconds, found


def shown(seen):
    """What the SDK saw, in a few words."""
    if "error" in seen:
        status = f" ({seen['status']})" if seen.get("status") else ""
        partly = f" after {seen['pieces']} pieces" if seen.get("pieces") else ""
        return f"{seen['error']}{status}{partly}"
    if "side" in seen:
        return ", ".join(seen["side"])
    if "call" in seen:
        return "call, then answer"
    tokens = f", {sum(seen['tokens'])} tokens" if seen.get("tokens") else ""
    return f"{seen['pieces']} pieces{tokens}" if seen.get("pieces") else f"answer{tokens}"


def line(markdown, *cells):
    if markdown:
        return f"| {' | '.join(str(cell) for cell in cells)} |"
    widths = (10, 10, 21, 38, 8, 20, 6, 0)
    return " ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, widths)).rstrip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--unstuck", type=Path, required=True)
    parser.add_argument("--faults", type=Path, required=True)
    parser.add_argument("--python", type=Path, required=True, help="Python interpreter with the SDKs")
    parser.add_argument("--js", type=Path, required=True, help="directory with client.mjs and node_modules")
    parser.add_argument("--only", default="", help="only rows that contain this text")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    # Nothing of the person's own: no key, no address, no proxy.
    env = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    env |= {"NO_PROXY": "127.0.0.1", "TZ": "UTC"}
    client = Path(__file__).with_name("client.py")
    sdks = {
        "py": Sdk([args.python, client], env),
        "js": Sdk(["node", args.js / "client.mjs"], env),
    }
    head = ("API", "language", "case", "SDK result", "requests", "recorded calls", "time", "result")
    print(line(args.markdown, *head))
    if args.markdown:
        print("|---" * len(head) + "|")
    wrong = rows = 0
    for name in CLIENTS:
        for language, spoken in LANGUAGES.items():
            for case in CASES:
                if args.only not in f"{name} {spoken} {case.name}":
                    continue
                seen, world, seconds, found = tried(case, name, language, sdks[language], args, env)
                rows += 1
                wrong += bool(found)
                result = f"FAILED: {'; '.join(found)}" if found else "ok"
                calls = ", ".join(world["calls"]) or "-"
                cells = (name, spoken, case.name, shown(seen), world["requests"], calls, f"{seconds:.1f}s", result)
                print(line(args.markdown, *cells), flush=True)
    for sdk in sdks.values():
        sdk.process.stdin.close()
        sdk.process.wait(PATIENCE)
    if wrong:
        print(f"{wrong} of {rows} failed", file=sys.stderr)
        sys.exit(1)


main()
