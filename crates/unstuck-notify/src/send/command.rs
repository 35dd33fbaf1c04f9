//! Tells through a program on this machine: the user's own command, or the desktop.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use unstuck_core::Timestamp;

use super::{ReceiverResponse, SendError};
use crate::event::NotificationEvent;
use crate::message::NotificationMessage;
use crate::text::{sanitize, truncate};

/// How long a command may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// What was to be shown on a desktop and is older than this is no news.
const MAX_DESKTOP_AGE: Duration = Duration::from_secs(3600);
/// So much of what a command complains is shown.
const MAX_SHOWN: usize = 200;

/// Runs the user's command line with the message on its standard input.
pub(super) async fn run_command(
    line: &str,
    message: &NotificationMessage,
    json: &str,
) -> Result<ReceiverResponse, SendError> {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", line])
        .env("UNSTUCK_EVENT", message.occasion.name())
        .env("UNSTUCK_RUN", &message.run)
        .env("UNSTUCK_TITLE", &message.title);
    run_with_timeout(command, json).await
}

/// Shows a message on the desktop, where there is one.
pub(super) async fn show_on_desktop(
    message: &NotificationMessage,
    path: &str,
    now: Timestamp,
) -> Result<ReceiverResponse, SendError> {
    if now.since(message.timestamp) > MAX_DESKTOP_AGE {
        return Err(SendError::permanent("too old to be shown on a desktop"));
    }
    let body = truncate(&message.text, 300);
    let has = |program: &str| {
        let mut folders = std::env::split_paths(path);
        folders.any(|folder| folder.join(program).is_file())
    };
    let mut command;
    if has("notify-send") {
        let urgency = match message.occasion {
            NotificationEvent::Escalation => "critical",
            _ => "normal",
        };
        command = Command::new("notify-send");
        command.args(["--app-name=unstuck", "--urgency", urgency, "--"]);
        command.args([&message.title, &without_markup(&body)]);
    } else if has("osascript") || Path::new("/usr/bin/osascript").is_file() {
        command = Command::new("osascript");
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
        return Err(SendError::permanent(
            "there is neither notify-send nor osascript here",
        ));
    }
    // What was not shown at once is no news later.
    let shown = run_with_timeout(command, "").await;
    shown.map_err(|error| SendError {
        retryable: super::Retryable::Never,
        ..error
    })
}

/// Desktops read some of it as markup.
fn without_markup(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

/// Runs a command to its end, and ends all that it started if it takes too long.
async fn run_with_timeout(
    mut command: Command,
    input: &str,
) -> Result<ReceiverResponse, SendError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| SendError::temporary(format!("cannot be started: {error}")))?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    match tokio::time::timeout(TIMEOUT, run_to_end(&mut child, input)).await {
        Ok(done) => done,
        Err(_) => {
            if let Some(group) = group {
                // It may have ended in this very moment.
                let _ = kill_process_group(group, Signal::KILL);
            }
            Err(SendError::temporary("did not end within 30 s"))
        }
    }
}

async fn run_to_end(child: &mut Child, input: &str) -> Result<ReceiverResponse, SendError> {
    if let Some(mut stdin) = child.stdin.take() {
        // Whoever does not read it does not want it.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        // What it complains is told as far as it can be read.
        let _ = stderr.take(4096).read_to_end(&mut said).await;
    }
    let status = child.wait().await;
    let status = status.map_err(|error| SendError::temporary(error.to_string()))?;
    let said = sanitize(&String::from_utf8_lossy(&said), MAX_SHOWN);
    if status.success() {
        Ok(ReceiverResponse {
            status: status.to_string(),
            excerpt: said,
        })
    } else {
        Err(SendError {
            excerpt: said,
            ..SendError::temporary(format!("ended with {status}"))
        })
    }
}
