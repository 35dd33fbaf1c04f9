//! Keeps the machine from falling asleep while something runs, where the system offers that.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::task::JoinHandle;

/// No machine falls asleep sooner by itself, and a short command starts no process for nothing.
const DELAY: Duration = Duration::from_secs(60);

/// The machine stays awake for as long as this lives.
#[derive(Debug)]
pub(super) struct KeepAwake(JoinHandle<()>);

impl KeepAwake {
    /// Keeps the machine awake from the first minute on.
    pub(super) fn start() -> Self {
        Self::start_after(DELAY, inhibitor_command())
    }

    fn start_after(delay: Duration, command: Command) -> Self {
        Self(tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // Where there is no such program the machine decides for itself.
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

/// Starts the program, which ends with its input: when the child is dropped, and also when this process is killed.
fn spawn_inhibitor(mut command: Command) -> std::io::Result<Child> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// The program that keeps this system awake.
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
        reason = "it only holds a lock of the system, and ends with this process"
    )]
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    // Ctrl-C is not meant for it.
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
    async fn it_is_held_as_long_as_it_is_wanted_and_not_longer() {
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
    async fn a_system_without_such_a_program_is_no_error() {
        let KeepAwake(task) =
            &KeepAwake::start_after(Duration::ZERO, command(&["/no/such/program"]));
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    }
}
