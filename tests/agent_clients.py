"""Shared code of the scripts that test real agents: agent CLIs, a temporary directory for each run, and the fault injection server.

    tests/agent_clients.py AGENT...   installs these agents; prints the directory with their executables

AGENTS is the only list of agents and their versions. They are installed into UNSTUCK_AGENTS_DIR, or unstuck-agents in the
user's cache. Exit code 77 means that something cannot run on this machine; the last line has the reason.
"""

import dataclasses
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
ANSWER = "Hello from the script"
NOT_RUN = 77


class NotRun(Exception):
    """Something cannot run on this machine. The message is the reason."""


@dataclasses.dataclass(frozen=True)
class Client:
    """An agent CLI in a package registry. `{platform}` is the operating system and architecture, such as linux-x64."""

    registry: str
    package: str
    version: str
    # Path of the executable below node_modules or the virtual environment.
    program: str

    def specifier(self, machine):
        return self.package.format(platform=machine) + {"npm": "@", "pip": "=="}[self.registry] + self.version


AGENTS = {
    "claude": Client("npm", "@anthropic-ai/claude-code-{platform}", "2.1.325", "@anthropic-ai/claude-code-{platform}/claude"),
    "codex": Client("npm", "@openai/codex", "0.166.0", ".bin/codex"),
    "gemini": Client("npm", "@google/gemini-cli", "0.61.0", ".bin/gemini"),
    "opencode": Client("npm", "opencode-ai", "1.18.33", ".bin/opencode"),
    "goose": Client("npm", "@aaif/goose-binary-{platform}", "1.52.0", "@aaif/goose-binary-{platform}/bin/goose"),
    "aider": Client("pip", "aider-chat", "0.86.2", "bin/aider"),
    "qwen": Client("npm", "@qwen-code/qwen-code", "0.24.4", ".bin/qwen"),
    "copilot": Client("npm", "@github/copilot", "1.0.102", ".bin/copilot"),
}


def binary(given):
    path = pathlib.Path(given or os.environ.get("UNSTUCK_BIN") or ROOT / "target/release/unstuck")
    if not path.exists():
        sys.exit(f"error: {path} not found\nhint: cargo build --release -p unstuck")
    return path.resolve()


def cannot_install(registry, why):
    """Raises NotRun if the registry is unreachable; otherwise exits with an error, because the installation itself failed."""
    ask = {
        "npm": ["npm", "view", "is-odd", "version"],
        "pip": [sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", "six"],
    }[registry]
    if subprocess.run(ask, capture_output=True).returncode != 0:
        raise NotRun(f"the {registry} registry is unreachable")
    sys.exit(f"error: {registry} cannot install the packages: {why.strip()[-300:]}")


class Agents:
    """The agent CLIs, installed outside of the repository; `bin` is the directory with their executables."""

    def __init__(self):
        cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        self.folder = pathlib.Path(os.environ.get("UNSTUCK_AGENTS_DIR") or pathlib.Path(cache) / "unstuck-agents")
        self.bin = self.folder / "bin"

    def install(self, names=("claude", "codex")):
        system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system())
        processor = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine())
        if not system or not processor:
            raise NotRun("the agents do not support this platform")
        self.machine = f"{system}-{processor}"
        self.bin.mkdir(parents=True, exist_ok=True)
        for registry, fetch in [("npm", self.fetch_npm), ("pip", self.fetch_pip)]:
            wanted = {name: AGENTS[name] for name in names if AGENTS[name].registry == registry}
            missing = [name for name, client in wanted.items() if self.installed(name) != client.version]
            if missing:
                fetch([AGENTS[name].specifier(self.machine) for name in missing])
            for name in missing:
                self.link(name)

    def installed(self, name):
        mark = self.bin / f".{name}"
        return mark.read_text() if mark.exists() and (self.bin / name).exists() else None

    def link(self, name):
        client = AGENTS[name]
        base = self.folder / {"npm": "node_modules", "pip": "python"}[client.registry]
        program = base / client.program.format(platform=self.machine)
        if not program.exists():
            sys.exit(f"error: {client.specifier(self.machine)} does not contain {program}")
        link = self.bin / name
        link.unlink(missing_ok=True)
        link.symlink_to(program)
        (self.bin / f".{name}").write_text(client.version)

    def fetch_npm(self, packages):
        if not shutil.which("npm"):
            raise NotRun("npm is not installed")
        # Includes the installed packages, because npm removes those that are not listed.
        there = [AGENTS[name].specifier(self.machine) for name in AGENTS if AGENTS[name].registry == "npm" and self.installed(name)]
        options = ["--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
        npm = ["npm", "install", "--prefix", str(self.folder), *options, *dict.fromkeys([*there, *packages])]
        print(f"installing {' '.join(packages)} into {self.folder}", file=sys.stderr)
        done = subprocess.run(npm, capture_output=True, text=True)
        if done.returncode != 0:
            cannot_install("npm", done.stderr)

    def fetch_pip(self, packages):
        venv = self.folder / "python"
        if not (venv / "bin/pip").exists():
            made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
            if made.returncode != 0:
                raise NotRun("cannot create a Python virtual environment")
        print(f"installing {' '.join(packages)} into {venv}", file=sys.stderr)
        pip = [venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode != 0:
            cannot_install("pip", done.stderr)


class Place:
    """A temporary directory for one run: home, project, store. Proxy variables keep its processes from reaching other machines."""

    def __init__(self, agents=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="unstuck-"))
        for name in ["home/.codex", "project", "config/unstuck"]:
            (self.folder / name).mkdir(parents=True)
        self.project = self.folder / "project"
        self.log = self.folder / "requests.jsonl"
        self.running = []
        path = os.environ["PATH"]
        if agents:
            path = f"{agents.bin}:{path}"
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
        """Starts a server that writes its port to a file; returns its URL."""
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
        """Writes the configuration of Codex: with a base URL, a custom provider; without one, `unstuck exec` sets the endpoint."""
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

    def calls(self):
        """Returns the log entries of the requests to the model, with their time as a Unix timestamp."""
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.strip()]
        parse = lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
        return [{**line, "at": parse(line["at"])} for line in lines if line.get("reply")]

    def requests(self):
        """Returns the time and the reply of each request to the model."""
        return [(call["at"], call["reply"]) for call in self.calls()]

    def close(self, keep=False):
        for process in self.running:
            process.kill()
            process.wait()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def start(command, place, env, append=False):
    """Starts a command in the project, in a new session; writes its output to the files `out` and `err`."""
    mode = "a" if append else "w"
    with open(place.folder / "out", mode) as out, open(place.folder / "err", mode) as err:
        return subprocess.Popen(
            [str(word) for word in command],
            env={**place.env, **env},
            cwd=place.project,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def finish(process, cap):
    """Waits for a command; returns its exit code, or None if it was killed after `cap` seconds."""
    try:
        return process.wait(timeout=cap)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return None


def run(command, place, env, cap):
    """Runs a command; returns its exit code (None if `cap` was reached), start time and duration in seconds."""
    begun, clock = time.time(), time.monotonic()
    code = finish(start(command, place, env), cap)
    return code, begun, time.monotonic() - clock


def main():
    agents = Agents()
    try:
        agents.install(sys.argv[1:] or list(AGENTS))
    except NotRun as why:
        print(f"not run: {why}")
        sys.exit(NOT_RUN)
    print(agents.bin)


if __name__ == "__main__":
    main()
