//! Keeps the machine awake during a run, if the system supports it.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::task::JoinHandle;

/// No machine goes to sleep sooner by itself, and short commands should not start a process needlessly.
const DELAY: Duration = Duration::from_secs(60);

/// Keeps the machine awake until dropped.
#[derive(Debug)]
pub(super) struct KeepAwake(JoinHandle<()>);

impl KeepAwake {
    /// Starts to keep the machine awake after the delay.
    pub(super) fn start() -> Self {
        Self::start_after(DELAY, inhibitor_command())
    }

    fn start_after(delay: Duration, command: Command) -> Self {
        Self(tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // Without such a program, the machine may go to sleep.
            if let Ok(_inhibitor) = spawn_inhibitor(command) {
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
fn inhibitor_command() -> Command {
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
    command(words)
}

fn command(words: &[&str]) -> Command {
    use std::os::unix::process::CommandExt;
    #[expect(
        clippy::disallowed_methods,
        reason = "it only holds a system inhibitor lock and exits with this process"
    )]
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    // Ctrl-C must not reach the program.
    command.args(words.iter().skip(1)).process_group(0);
    command
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

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
        let awake = KeepAwake::start_after(Duration::ZERO, command(&["sh", "-c", &script]));
        until_there(&held).await;
        assert!(!released.exists());
        drop(awake);
        until_there(&released).await;
    }

    #[tokio::test]
    async fn missing_inhibitor_program_is_not_an_error() {
        let KeepAwake(task) =
            &KeepAwake::start_after(Duration::ZERO, command(&["/no/such/program"]));
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    }
}
