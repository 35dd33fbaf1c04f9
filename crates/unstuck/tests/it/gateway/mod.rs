//! The gateway for its users: a shared one, private ones, and sessions with switched models.

mod escalating;
mod holding;
mod outages;
mod private;
mod serving;
mod success;
mod upstreams;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use unstuck_faults::{FaultScript, FaultServer};

use crate::Place;

/// Retries that a test can wait for.
const QUICK: &str =
    "[policy]\njitter = \"none\"\nbackoffBase = 0.01\nmaxBackoff = 0.02\nmaxRetries = 2\n";

/// Starts an API that plays a script.
pub(crate) fn api(script: &str) -> FaultServer {
    let script: FaultScript = script.parse().unwrap();
    FaultServer::start(script).unwrap()
}

/// Returns the number of requests to an API.
fn asked(api: &FaultServer) -> usize {
    api.requests().len()
}

/// Installs a `claude` that calls its API once per execution, and stores only the id of its conversation.
pub(crate) fn claude(place: &Place) {
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    place.tool(
        "claude",
        &format!(
            r#"#!/bin/sh
echo x >> count; echo "$*" >> lines; env >> variables
model=claude-sonnet-5-5
while [ $# -gt 0 ]; do
  case "$1" in --resume) resume="--resume $2";; --model) model="$2";; esac
  shift
done
FAULTS_API_URL="$ANTHROPIC_BASE_URL" exec "{unstuck}" __demo-agent --output-format json --model "$model" $resume -p "do the work"
"#
        ),
    );
}

/// Writes the user's own configuration.
pub(crate) fn by_user(place: &Place, text: &str) {
    let folder = place.folder.path().join(".config/unstuck");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

/// Runs a command in this place whose agents would use this API.
fn exec(place: &Place, api: &FaultServer, args: &[&str]) -> crate::Ended {
    let mut command = place.command(args);
    command.env("ANTHROPIC_BASE_URL", api.url());
    ended(&mut command)
}

fn ended(command: &mut std::process::Command) -> crate::Ended {
    let output = command.output().unwrap();
    crate::Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A serving gateway that stops with the test.
pub(crate) struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) port: String,
    file: PathBuf,
}

impl Serving {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        Self::start_with(place, args, &[])
    }

    pub(crate) fn start_with(place: &Place, args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start_at(place, "0", args, env)
    }

    /// Starts it at a port that was free a moment ago.
    pub(crate) fn start_at(place: &Place, port: &str, args: &[&str], env: &[(&str, &str)]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let name = format!("port-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        let file = place.project().join(&name);
        let listen = format!("127.0.0.1:{port}");
        let words = [&["serve", "--listen", &listen, "--port-file", &name], args].concat();
        let mut command = place.command(&words);
        command
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let port = until("the gateway listens", || fs::read_to_string(&file).ok());
        Self {
            child,
            stdout,
            port: port.trim().to_owned(),
            file,
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Returns the printed link to the dashboard.
    pub(crate) fn link(&mut self) -> String {
        let mut line = String::new();
        while !line.starts_with("dashboard") {
            line.clear();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "no link");
        }
        line.trim_start_matches("dashboard").trim().to_owned()
    }

    /// Stops it by a signal.
    pub(crate) fn end(&mut self) {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().unwrap();
    }

    /// Stops it by a signal, and returns its code, standard output and standard error.
    pub(crate) fn stop(mut self) -> (Option<i32>, String, String) {
        self.signal(rustix::process::Signal::TERM);
        let code = self.child.wait().unwrap().code();
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        (code, out, err)
    }

    pub(crate) fn ask(&self, place: &Place) -> crate::Ended {
        let words = ["__demo-agent", "--output-format", "json", "-p", "hello"];
        let mut command = place.command(&words);
        let url = format!("http://127.0.0.1:{}/anthropic", self.port);
        ended(command.env("FAULTS_API_URL", url))
    }
}

impl Drop for Serving {
    /// A failed test leaves no process behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a value is available.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "a test waits for another process"
)]
pub(crate) fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
