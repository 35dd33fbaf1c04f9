//! What a user of the commands relies on, tried on the real program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod classify;
mod config;
mod kinds;
mod plan;
mod policy;
mod store;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

/// An empty home and project, so that nothing of the machine's own configuration is read.
struct Place {
    folder: TempDir,
}

/// What a command printed and how it ended.
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
        let output = Command::cargo_bin("unstuck")
            .unwrap()
            .args(args)
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", "/usr/bin:/bin")
            .env("TZ", "UTC")
            .write_stdin(stdin)
            .output()
            .unwrap();
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The JSON that a command prints.
    fn json(&self, args: &[&str], stdin: &str) -> serde_json::Value {
        let ended = self.run(args, stdin);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        serde_json::from_str(&ended.stdout).unwrap()
    }
}
