//! Tells through a program on this machine: the user's own command, or the desktop.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use unstuck_core::Timestamp;

use super::{Answer, SendError};
use crate::message::Message;
use crate::occasion::Occasion;
use crate::text::{clean, short};

/// How long a command may take.
const TIME: Duration = Duration::from_secs(30);
/// What was to be shown on a desktop and is older than this is no news.
const NEWS: Duration = Duration::from_secs(3600);
/// So much of what a command complains is shown.
const SHOWN: usize = 200;

/// Runs the user's command line with the message on its standard input.
pub(super) async fn run(line: &str, message: &Message, json: &str) -> Result<Answer, SendError> {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", line])
        .env("UNSTUCK_EVENT", message.occasion.name())
        .env("UNSTUCK_RUN", &message.run)
        .env("UNSTUCK_TITLE", &message.title);
    ended(command, json).await
}

/// Shows a message on the desktop, where there is one.
pub(super) async fn show(
    message: &Message,
    path: &str,
    now: Timestamp,
) -> Result<Answer, SendError> {
    if now.since(message.timestamp) > NEWS {
        return Err(SendError::never("too old to be shown on a desktop"));
    }
    let body = short(&message.text, 300);
    let has = |program: &str| {
        let mut folders = std::env::split_paths(path);
        folders.any(|folder| folder.join(program).is_file())
    };
    let mut command;
    if has("notify-send") {
        let urgency = match message.occasion {
            Occasion::Escalation => "critical",
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
        return Err(SendError::never(
            "there is neither notify-send nor osascript here",
        ));
    }
    // What was not shown at once is no news later.
    let shown = ended(command, "").await;
    shown.map_err(|error| SendError {
        again: super::Again::Never,
        ..error
    })
}

/// Desktops read some of it as markup.
fn without_markup(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

/// Runs a command to its end, and ends all that it started if it takes too long.
async fn ended(mut command: Command, input: &str) -> Result<Answer, SendError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| SendError::later(format!("cannot be started: {error}")))?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    match tokio::time::timeout(TIME, finished(&mut child, input)).await {
        Ok(done) => done,
        Err(_) => {
            if let Some(group) = group {
                // It may have ended in this very moment.
                let _ = kill_process_group(group, Signal::KILL);
            }
            Err(SendError::later("did not end within 30 s"))
        }
    }
}

async fn finished(child: &mut Child, input: &str) -> Result<Answer, SendError> {
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
    let status = status.map_err(|error| SendError::later(error.to_string()))?;
    let said = clean(&String::from_utf8_lossy(&said), SHOWN);
    match status.success() {
        true => Ok(Answer {
            status: status.to_string(),
            said,
        }),
        false => Err(SendError {
            said,
            ..SendError::later(format!("ended with {status}"))
        }),
    }
}
