//! Delivery through a local program: the user's command, or a desktop notification.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use unstuck_core::Timestamp;
use unstuck_files::{TrustedProgram, trusted_search_path};

use super::{DeliveryTargetReply, NotificationSendError};
use crate::event::NotificationEvent;
use crate::message::NotificationMessage;
use crate::sanitize_text::{sanitize, truncate};

/// The time limit of a command.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The age above which desktop notifications are dropped.
const MAX_DESKTOP_AGE: Duration = Duration::from_secs(3600);
/// The maximum length of a shown error message.
const MAX_SHOWN: usize = 200;

/// Runs the user's command line with the message on its standard input.
pub(super) async fn run_command(
    line: &str,
    message: &NotificationMessage,
    json: &str,
    path: Option<&str>,
) -> Result<DeliveryTargetReply, NotificationSendError> {
    let mut command = Command::new("/bin/sh");
    if let Some(path) = path {
        let projects = [Path::new(&message.project)];
        command.env("PATH", trusted_search_path(path.as_ref(), &projects));
    }
    command
        .args(["-c", line])
        .env("UNSTUCK_EVENT", message.event.name())
        .env("UNSTUCK_RUN", &message.run)
        .env("UNSTUCK_TITLE", &message.title);
    run_with_timeout(command, json).await
}

/// Shows a message on the desktop, if there is one.
pub(super) async fn show_on_desktop(
    message: &NotificationMessage,
    path: &str,
    now: Timestamp,
) -> Result<DeliveryTargetReply, NotificationSendError> {
    if now.since(message.timestamp) > MAX_DESKTOP_AGE {
        return Err(NotificationSendError::permanent(
            "too old for a desktop notification",
        ));
    }
    let body = truncate(&message.text, 300);
    let find = |program: &str, path: &str| {
        let projects = [Path::new(&message.project)];
        let found = TrustedProgram::find(program, path.as_ref(), &projects)?;
        let mut command = Command::new(found.path);
        command.env("PATH", found.search_path).current_dir("/");
        Some(command)
    };
    let mut command;
    if let Some(program) = find("notify-send", path) {
        let urgency = match message.event {
            NotificationEvent::Escalation => "critical",
            _ => "normal",
        };
        command = program;
        command.args(["--app-name=unstuck", "--urgency", urgency, "--"]);
        command.args([&message.title, &without_markup(&body)]);
    } else if let Some(program) = find("osascript", path).or_else(|| find("osascript", "/usr/bin"))
    {
        command = program;
        command.args([
            "-e",
            "on run argv",
            "-e",
            "display notification (item 2 of argv) with title (item 1 of argv)",
            "-e",
            "end run",
            &message.title,
            &body,
        ]);
    } else {
        return Err(NotificationSendError::permanent(
            "neither notify-send nor osascript is installed",
        ));
    }
    // A notification that could not be shown at once is outdated later.
    let shown = run_with_timeout(command, "").await;
    shown.map_err(|error| NotificationSendError {
        retryable: super::DeliveryRetryAdvice::Never,
        ..error
    })
}

/// Removes what desktops interpret as markup.
fn without_markup(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

/// Runs a command to completion, and kills its process tree on timeout.
async fn run_with_timeout(
    mut command: Command,
    input: &str,
) -> Result<DeliveryTargetReply, NotificationSendError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| NotificationSendError::temporary(format!("cannot start: {error}")))?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    match tokio::time::timeout(TIMEOUT, run_to_end(&mut child, input)).await {
        Ok(done) => done,
        Err(_) => {
            if let Some(group) = group {
                // It may have exited just now.
                let _ = kill_process_group(group, Signal::KILL);
            }
            Err(NotificationSendError::temporary("timed out after 30 s"))
        }
    }
}

async fn run_to_end(
    child: &mut Child,
    input: &str,
) -> Result<DeliveryTargetReply, NotificationSendError> {
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input ignores it.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        // Its error output is reported as far as it is readable.
        let _ = stderr.take(4096).read_to_end(&mut said).await;
    }
    let status = child.wait().await;
    let status = status.map_err(|error| NotificationSendError::temporary(error.to_string()))?;
    let said = sanitize(&String::from_utf8_lossy(&said), MAX_SHOWN);
    if status.success() {
        Ok(DeliveryTargetReply {
            status: status.to_string(),
            excerpt: said,
        })
    } else {
        Err(NotificationSendError {
            excerpt: said,
            ..NotificationSendError::temporary(format!("failed with {status}"))
        })
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes and reads files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn put(folder: &Path, name: &str, line: &str) {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A confined agent plants `notify-send`, which would run outside of its sandbox.
    #[tokio::test]
    async fn planted_program_is_not_run_for_a_notification() {
        let place = tempfile::tempdir().unwrap();
        let (project, own) = (place.path().join("project"), place.path().join("own"));
        let (pwned, told) = (place.path().join("pwned"), place.path().join("told"));
        let attack = format!("/bin/touch {}", pwned.display());
        for name in ["notify-send", "osascript", "helper"] {
            put(&project.join("bin"), name, &attack);
        }
        put(&own, "helper", ":");
        put(
            &own,
            "notify-send",
            &format!("helper; pwd > {}", told.display()),
        );
        let folders = [Path::new("."), &project.join("bin"), &own];
        let path = std::env::join_paths(folders).unwrap();
        let path = path.to_str().unwrap();
        let now = Timestamp::from_seconds(0);
        let message = NotificationMessage {
            project: project.display().to_string(),
            ..NotificationMessage::sample(NotificationEvent::RunFinished, now)
        };
        show_on_desktop(&message, path, now).await.unwrap();
        assert_eq!(fs::read_to_string(&told).unwrap(), "/\n");
        let planted = project.join("bin").display().to_string();
        let none = show_on_desktop(&message, &planted, now).await;
        assert!(none.is_err() || Path::new("/usr/bin/osascript").exists());
        let line = "helper";
        run_command(line, &message, "", Some(path)).await.unwrap();
        assert!(!pwned.exists());
    }
}
