"""What the scripts with real agents share: the agent CLIs, a place of its own for each run, and the failing API."""

import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLAUDE_VERSION = "2.1.325"
CODEX_VERSION = "0.166.0"
ANSWER = "Hello from the script"


class NotRun(Exception):
    """Something cannot run on this machine; the reason."""


def binary(given):
    path = pathlib.Path(given or os.environ.get("UNSTUCK_BIN") or ROOT / "target/release/unstuck")
    if not path.exists():
        sys.exit(f"error: there is no program at {path}\nhint: cargo build --release -p unstuck")
    return path.resolve()


class Agents:
    """Claude Code and Codex, installed by npm outside of the repository."""

    def __init__(self):
        cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        self.folder = pathlib.Path(os.environ.get("UNSTUCK_AGENTS_DIR") or pathlib.Path(cache) / "unstuck-agents")

    def install(self):
        system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system())
        machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine())
        if not system or not machine:
            raise NotRun("there is no build of the agents for this machine")
        package = f"@anthropic-ai/claude-code-{system}-{machine}"
        packages = [f"{package}@{CLAUDE_VERSION}", f"@openai/codex@{CODEX_VERSION}"]
        self.claude = self.folder / "node_modules" / package / "claude"
        self.codex = self.folder / "node_modules/.bin/codex"
        mark = self.folder / "installed"
        if mark.exists() and mark.read_text() == " ".join(packages):
            return
        if not shutil.which("npm"):
            raise NotRun("npm is not installed")
        self.folder.mkdir(parents=True, exist_ok=True)
        options = ["--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
        npm = ["npm", "install", "--prefix", str(self.folder), *options, *packages]
        done = subprocess.run(npm, capture_output=True, text=True)
        if done.returncode != 0:
            raise NotRun(f"npm could not install the agents: {done.stderr.strip()[-300:]}")
        mark.write_text(" ".join(packages))


class Place:
    """A folder of its own for one run: home, project, store. Nothing leaves the machine from here."""

    def __init__(self, agents=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="unstuck-"))
        for name in ["home/.codex", "project", "config/unstuck"]:
            (self.folder / name).mkdir(parents=True)
        self.project = self.folder / "project"
        self.log = self.folder / "requests.jsonl"
        self.running = []
        path = os.environ["PATH"]
        if agents and hasattr(agents, "claude"):
            path = f"{agents.claude.parent}:{agents.codex.parent}:{path}"
        nowhere = "http://127.0.0.1:9"
        self.env = {
            "PATH": path,
            "HOME": str(self.folder / "home"),
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "CODEX_HOME": str(self.folder / "home/.codex"),
            "HTTPS_PROXY": nowhere,
            "HTTP_PROXY": nowhere,
            "NO_PROXY": "127.0.0.1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "OPENAI_API_KEY": "made-up",
        }

    def serve(self, name, *command):
        """Starts a server that writes its port into a file; returns its address."""
        port = self.folder / f"{name}.port"
        log = open(self.folder / f"{name}.log", "w")
        process = subprocess.Popen(
            [*command, "--port-file", str(port)], env=self.env, cwd=self.project, stdout=log, stderr=log
        )
        self.running.append(process)
        deadline = time.monotonic() + 30
        while not (port.exists() and port.read_text()):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"error: {name} did not start: {(self.folder / f'{name}.log').read_text()}")
            time.sleep(0.02)
        return f"http://127.0.0.1:{port.read_text().strip()}"

    def faults(self, unstuck, script, listen="127.0.0.1:0"):
        file = self.folder / "script.toml"
        file.write_text(script)
        return self.serve("faults", unstuck, "faults", "serve", str(file), "--listen", listen, "--log", str(self.log))

    def configure_codex(self, base):
        """Codex takes its endpoint from a file; without one it is told by `unstuck exec`."""
        text = 'model = "gpt-5.1"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n'
        home = self.folder / "home/.codex"
        if base:
            text = (
                'model_provider = "faults"\n' + text + '[model_providers.faults]\nname = "faults"\n'
                f'base_url = "{base}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
            )
        else:
            (home / "auth.json").write_text('{"OPENAI_API_KEY":"made-up"}')
        (home / "config.toml").write_text(text)

    def requests(self):
        """The moments at which the model was asked, and what it replied."""
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.strip()]
        parse = lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
        return [(parse(line["at"]), line["reply"]) for line in lines if line.get("reply")]

    def close(self, keep=False):
        for process in self.running:
            process.kill()
            process.wait()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def run(command, place, env, cap):
    """Runs a command to its end; returns its exit code (none if the cap was reached), when it began, and its seconds."""
    begun, clock = time.time(), time.monotonic()
    with open(place.folder / "out", "w") as out, open(place.folder / "err", "w") as err:
        process = subprocess.Popen(
            [str(word) for word in command],
            env={**place.env, **env},
            cwd=place.project,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=cap)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return code, begun, time.monotonic() - clock
