//! Keeps the machine awake during a run, if the system supports it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::task::JoinHandle;
use unstuck_files::TrustedProgram;

use crate::environment_variables;

/// No machine goes to sleep sooner by itself, and short commands should not start a process needlessly.
const DELAY: Duration = Duration::from_secs(60);

/// Keeps the machine awake until dropped.
#[derive(Debug)]
pub(super) struct KeepAwake(JoinHandle<()>);

impl KeepAwake {
    /// Starts to keep the machine awake after the delay; with a program outside of these projects only.
    pub(super) fn start(projects: &[&Path]) -> Self {
        Self::start_after(DELAY, inhibitor_command(projects))
    }

    fn start_after(delay: Duration, command: Option<Command>) -> Self {
        Self(tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // Without such a program, the machine may go to sleep.
            if let Some(Ok(_inhibitor)) = command.map(spawn_inhibitor) {
                std::future::pending::<()>().await;
            }
        }))
    }
}

impl Drop for KeepAwake {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts the program, which exits at end of input: when the child is dropped, or this process is killed.
fn spawn_inhibitor(mut command: Command) -> std::io::Result<Child> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Returns the command that inhibits sleep on this system.
fn inhibitor_command(projects: &[&Path]) -> Option<Command> {
    let pid = std::process::id().to_string();
    let words: &[&str] = if cfg!(target_os = "macos") {
        &["caffeinate", "-i", "-w", &pid]
    } else {
        &[
            "systemd-inhibit",
            "--what=idle:sleep",
            "--mode=block",
            "--who=unstuck",
            "--why=a command is running",
            "cat",
        ]
    };
    let search = environment_variables::variable("PATH").unwrap_or_default();
    command(words, search.as_ref(), projects)
}

/// Returns a command that is run outside of the projects, and finds no program in them either.
fn command(words: &[&str], search: &OsStr, projects: &[&Path]) -> Option<Command> {
    use std::os::unix::process::CommandExt;
    let (name, arguments) = words.split_first()?;
    let program = TrustedProgram::find(name, search, projects)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "it only holds a system inhibitor lock and exits with this process"
    )]
    let mut command = Command::new(program.path);
    command
        .args(arguments)
        .env("PATH", program.search_path)
        .current_dir("/")
        // Ctrl-C must not reach the program.
        .process_group(0);
    Some(command)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn path_of_tests() -> OsString {
        environment_variables::variable("PATH").unwrap().into()
    }

    async fn until_there(path: &Path) {
        let there = async {
            while !path.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), there)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn sleep_is_inhibited_until_the_guard_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (held, released) = (path("held"), path("released"));
        let script = format!(
            "touch {}; cat; touch {}",
            held.display(),
            released.display()
        );
        let words = ["sh", "-c", &script];
        let awake = KeepAwake::start_after(Duration::ZERO, command(&words, &path_of_tests(), &[]));
        until_there(&held).await;
        assert!(!released.exists());
        drop(awake);
        until_there(&released).await;
    }

    /// A confined agent plants `systemd-inhibit` and `cat`, which would run outside of its sandbox.
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "a test makes files")]
    async fn planted_inhibitor_program_is_not_run() {
        use std::os::unix::fs::PermissionsExt;

        let place = tempfile::tempdir().unwrap();
        let (project, own) = (place.path().join("project"), place.path().join("own"));
        let (pwned, held) = (place.path().join("pwned"), place.path().join("held"));
        let put = |folder: &Path, name: &str, line: &str| {
            std::fs::create_dir_all(folder).unwrap();
            let path = folder.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        let bin = project.join("node_modules/.bin");
        for name in ["systemd-inhibit", "cat"] {
            let attack = format!("/bin/touch {}", pwned.display());
            put(&project, name, &attack);
            put(&bin, name, &attack);
        }
        put(
            &own,
            "systemd-inhibit",
            "PATH=$PATH:/usr/bin:/bin; pwd; exec cat",
        );
        put(&own, "cat", &format!("pwd > {}", held.display()));
        let folders = [Path::new("."), Path::new(""), &bin, &own];
        let search = std::env::join_paths(folders).unwrap();
        let attacked = command(&["systemd-inhibit", "cat"], &search, &[&project]);
        let _awake = KeepAwake::start_after(Duration::ZERO, attacked);
        until_there(&held).await;
        assert!(!pwned.exists());
    }

    #[tokio::test]
    async fn missing_inhibitor_program_is_not_an_error() {
        let missing = command(&["no-such-program"], &path_of_tests(), &[]);
        assert!(missing.is_none());
        let KeepAwake(task) = &KeepAwake::start_after(Duration::ZERO, missing);
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    }
}
