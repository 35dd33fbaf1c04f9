//! Tests of `unstuck run`: pipelines of roles with recovery.

mod attacks;
mod changes;
mod circles;
mod effects;
mod kinds;
mod loops;
mod mistakes;
mod outputs;
mod prompts;
mod recovery;
mod reloading;
mod resuming;
mod waiting;

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Ended, Place};

/// Delays that are short enough for tests.
const QUICK: &str =
    "[policy]\ntemplate = \"pipeline\"\ncurve = \"exponential\"\nbackoffBase = 0.001\n";

/// Returns a role played by a shell script; `more` contains further lines of its table.
fn role(id: &str, more: &str, script: &str) -> String {
    format!(
        "\n[[role]]\nid = \"{id}\"\nagent = \"command\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n{more}\n"
    )
}

/// Sets up a project with these roles and short delays.
fn project(config: &str) -> Place {
    let place = Place::new();
    configure(&place, config);
    place
}

/// Changes the configuration and trusts it as the owner of the project.
fn configure_trusted(place: &Place, text: &str) {
    configure(place, text);
    place.run(&["trust"], "").told(0, &[]);
}

fn configure(place: &Place, config: &str) {
    place.write("unstuck.toml", &format!("{config}\n{QUICK}"));
}

/// A running unstuck process.
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    told: String,
}

impl Running {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        Self::of(place.command(args))
    }

    /// Starts a custom command.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self {
            child,
            lines,
            told: String::new(),
        }
    }

    /// Waits until the output contains a text.
    #[track_caller]
    pub(crate) fn until(&mut self, part: &str) -> &Self {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            self.told.push_str(&line);
            self.told.push('\n');
            if line.contains(part) {
                return self;
            }
        }
        panic!("{part} was not told: {}", self.told)
    }

    /// Sends Ctrl-C.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its exit code and all of its output.
    pub(crate) fn end(mut self) -> Ended {
        let status = self.child.wait().unwrap();
        for line in self.lines {
            self.told.push_str(&line.unwrap());
            self.told.push('\n');
        }
        Ended {
            code: status.code().unwrap_or(-1),
            stdout: String::new(),
            stderr: self.told,
        }
    }

    /// Kills it immediately, like a crash or power loss.
    pub(crate) fn kill(self) -> Ended {
        self.signal(Signal::KILL);
        self.end()
    }
}

/// Runs git in the project with an author set.
pub(crate) fn git(place: &Place, args: &[&str]) -> String {
    let author = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    let output = place
        .program("git", &[&author[..], args].concat())
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
