//! End-to-end tests with the real binary.
#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agents;
mod answers;
mod classify;
mod config;
mod cost;
mod demo;
mod diff;
mod documents;
mod exec;
mod faults;
mod gateway;
mod golden;
mod guard;
mod hardening;
mod history;
mod hostile_files;
mod inbox;
mod kill_commands;
mod kill_run;
mod kinds;
mod other_users;
mod output_snapshot;
mod plan;
mod policy;
mod preview;
mod project_file;
mod repair;
mod run;
mod scope;
mod store;
mod trust;
mod views;
mod web;
mod webhook;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

/// An empty home and project, so that the machine's own configuration is not read.
struct Place {
    folder: TempDir,
}

/// The output and exit of a command.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(place.project()).unwrap();
        place
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, args: &[&str], stdin: impl Into<Vec<u8>>) -> Ended {
        let output = Command::from_std(self.command(args))
            .write_stdin(stdin)
            .output()
            .unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns an unstuck command in this place.
    fn command(&self, args: &[&str]) -> std::process::Command {
        self.program(env!("CARGO_BIN_EXE_unstuck"), args)
    }

    /// Returns a shell command in this place, with the binary under test as `$UNSTUCK`.
    fn shell(&self, line: &str) -> std::process::Command {
        let mut command = self.program("sh", &["-c", line]);
        command.env("UNSTUCK", env!("CARGO_BIN_EXE_unstuck"));
        command
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the program under test is started here"
    )]
    fn program(&self, name: &str, args: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(name);
        let tools = self.folder.path().join("bin");
        command
            .args(args)
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", format!("{}:/usr/bin:/bin", tools.display()))
            .env("TZ", "UTC");
        command
    }

    /// Adds a program to the search path.
    fn tool(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let folder = self.folder.path().join("bin");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the directory next to the store that holds the authoritative run files.
    fn state(&self) -> PathBuf {
        self.folder.path().join(".local/state/unstuck/unstuck.d")
    }

    /// Returns the directory of the only run in the state directory.
    fn run_folder(&self) -> PathBuf {
        let mut runs = std::fs::read_dir(self.state().join("runs")).unwrap();
        let run = runs.next().unwrap().unwrap().path();
        assert!(runs.next().is_none(), "there are several runs");
        run
    }

    /// Returns a file of the only run of the project, from the copies in the project.
    fn of_run(&self, name: &str) -> String {
        let runs = self.project().join(".unstuck/runs");
        let mut runs = std::fs::read_dir(runs).unwrap();
        let run = runs.next().unwrap().unwrap().path();
        assert!(runs.next().is_none(), "there are several runs");
        std::fs::read_to_string(run.join(name)).unwrap()
    }

    /// Returns a JSON file of the only run of the project.
    fn json_of_run(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.of_run(name)).unwrap()
    }

    /// Returns the JSON output of a command.
    fn json(&self, args: &[&str], stdin: &str) -> serde_json::Value {
        let ended = self.run(args, stdin);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        serde_json::from_str(&ended.stdout).unwrap()
    }
}

impl Place {
    /// Returns the events of the only run with this name.
    fn events(&self, name: &str) -> Vec<serde_json::Value> {
        let all = self.of_run("events.jsonl");
        let all = all.lines().map(|line| serde_json::from_str(line).unwrap());
        all.filter(|event: &serde_json::Value| event["event"] == name)
            .collect()
    }

    /// Returns the lines of a project file that scripts write; empty if it does not exist.
    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.project().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns a project file without its final newline.
    fn text(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.project().join(name)).unwrap();
        text.trim_end().to_owned()
    }
}

impl Ended {
    /// Asserts the exit code and these parts of the output.
    #[track_caller]
    fn told(&self, code: i32, parts: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part} in {}", self.stderr);
        }
        self
    }
}

/// Waits until a condition holds.
#[expect(
    clippy::disallowed_methods,
    reason = "another process makes it hold, and tells nobody"
)]
fn eventually(mut holds: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !holds() {
        assert!(begin.elapsed().as_secs() < 60, "it never came to hold");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Returns whether any file below a directory contains a text.
fn anywhere(folder: &Path, text: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return anywhere(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}
