//! Asks once on the terminal whether the project's repair rules are trusted.
#![expect(
    clippy::disallowed_methods,
    reason = "files of the system, which no agent can put there"
)]

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use anstream::{AutoStream, ColorChoice};
use anyhow::Result;
use unstuck_repair::trust::TrustStatus;
use unstuck_run::nested_run_detection::detect_nested_run;

use super::trust_contents::{self, TrustContents};
use super::{ProjectTrustState, ProjectWithTrustRecord};
use crate::clock;
use crate::config::Config;
use crate::output::{BOLD, DIM, YELLOW};
use crate::redacted_stderr;

/// Maximum length of an answer.
const MAX_ANSWER: usize = 100;

/// Asks on the terminal about new repair rules of the project, and records the answer.
///
/// Does nothing without a terminal, inside a supervised agent, or if declined before.
pub(crate) fn ask_trust(config: &Config, root: &Path) -> Result<()> {
    let project = ProjectWithTrustRecord::new(config, root);
    if let ProjectTrustState::Untrusted(standing) = project.trust_state()
        && standing != TrustStatus::Declined
        && detect_nested_run().is_none()
        && let Some(terminal) = terminal()
        && let Some(shown) = TrustContents::of_project(&project)?
    {
        let text = question_text(&project, &standing, &shown);
        if ask_on_terminal(terminal, &text, "Trust the current version?")? {
            project.accept(shown.baseline)?
        } else {
            project.decline()?
        }
    }
    Ok(())
}

/// Shows a text on the terminal and asks for confirmation; none if nobody can be asked.
pub(crate) fn confirm(text: &str, question: &str) -> Option<bool> {
    if detect_nested_run().is_some() {
        return None;
    }
    ask_on_terminal(terminal()?, text, question).ok()
}

/// Opens the controlling terminal if this program may use it now.
fn terminal() -> Option<File> {
    if !redacted_stderr::is_terminal() {
        return None;
    }
    // Standard input belongs to the supervised command.
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let terminal = terminal.ok()?;
    // Reading in the background would stop the process.
    let foreground = rustix::termios::tcgetpgrp(&terminal).ok()?;
    (foreground == rustix::process::getpgrp()).then_some(terminal)
}

fn question_text(
    project: &ProjectWithTrustRecord<'_>,
    standing: &TrustStatus,
    shown: &TrustContents,
) -> String {
    let files = project.files();
    let mut lines = Vec::new();
    match standing {
        TrustStatus::Changed { since, .. } => {
            let since = clock::format_time(*since);
            lines.push(format!(
                "{BOLD}The repair rules in {files} changed{BOLD:#} since you trusted them ({since}):"
            ));
            lines.extend(trust_contents::change_lines(&project.changes(standing)));
            lines.push(format!("{DIM}+ allows more, - allows less{DIM:#}"));
        }
        _ => {
            lines.push(format!(
                "{BOLD}The repair rules in {files} are not trusted yet.{BOLD:#} [recovery] declares:"
            ));
            lines.extend(trust_contents::allowed_lines(&shown.section));
        }
    }
    lines.extend(shown.file_lines());
    let warnings = shown.warnings.iter();
    lines.extend(warnings.map(|warning| format!("{YELLOW}note{YELLOW:#}: {warning}")));
    lines.push(
        "Untrusted rules approve nothing. To trust them later, run `unstuck trust`.".to_owned(),
    );
    lines.join("\n")
}

fn ask_on_terminal(mut terminal: File, text: &str, question: &str) -> Result<bool> {
    let mut to = AutoStream::new(terminal.try_clone()?, ColorChoice::Auto);
    write!(to, "{text}\n{question} [y/N] ")?;
    to.flush()?;
    Ok(is_yes(&read_line(&mut terminal)))
}

/// Reads a typed line; empty if the terminal is gone.
fn read_line(from: &mut impl Read) -> String {
    let mut typed = Vec::new();
    let mut byte = [0];
    while typed.len() < MAX_ANSWER && from.read(&mut byte).is_ok_and(|count| count == 1) {
        if byte[0] == b'\n' {
            break;
        }
        typed.push(byte[0]);
    }
    String::from_utf8_lossy(&typed).into_owned()
}

/// Returns true only for a clear yes.
fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for answer in ["y", "Y", " yes ", "YES"] {
            assert!(is_yes(answer), "{answer}");
        }
        for answer in ["", "n", "no", "yn", "yess", "j", "1", "y y"] {
            assert!(!is_yes(answer), "{answer}");
        }
    }

    #[test]
    fn exactly_one_line_is_read() {
        let mut typed = io::Cursor::new(b"yes\nrm -rf /\n".to_vec());
        assert_eq!(read_line(&mut typed), "yes");
        assert_eq!(read_line(&mut io::Cursor::new(b"y")), "y");
        assert_eq!(read_line(&mut io::empty()), "");
    }
}
