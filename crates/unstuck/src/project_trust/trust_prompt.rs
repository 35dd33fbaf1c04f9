//! Asks the person at the terminal once whether they trust what the project says about repairs.
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
use unstuck_run::nesting::detect_nested_run;

use super::trust_contents::{self, TrustContents};
use super::{TrustState, TrustedProject};
use crate::clock;
use crate::config::Config;
use crate::output::{BOLD, DIM, YELLOW};
use crate::redacted_stderr;

/// More than this nobody answers.
const MAX_ANSWER: usize = 100;

/// Asks the person at the terminal about what the project allows, if that is new, and remembers the answer.
///
/// Without a terminal, inside a supervised agent, or where it was declined before, nobody is asked.
pub(crate) fn ask_trust(config: &Config, root: &Path) -> Result<()> {
    let project = TrustedProject::new(config, root);
    if let TrustState::Untrusted(standing) = project.trust_state()
        && standing != TrustStatus::Declined
        && detect_nested_run().is_none()
        && let Some(terminal) = terminal()
        && let Some(shown) = TrustContents::of_project(&project)?
    {
        let text = question_text(&project, &standing, &shown);
        if ask_on(terminal, &text, "Trust it as it is now?")? {
            project.accept(shown.baseline)?
        } else {
            project.decline()?
        }
    }
    Ok(())
}

/// Shows something to the person at the terminal, and asks whether they agree; none where nobody can be asked.
pub(crate) fn confirm(text: &str, question: &str) -> Option<bool> {
    if detect_nested_run().is_some() {
        return None;
    }
    ask_on(terminal()?, text, question).ok()
}

/// The terminal that a person sits at, if this program may talk to it now.
fn terminal() -> Option<File> {
    if !redacted_stderr::is_terminal() {
        return None;
    }
    // Standard input is for the command that is run.
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let terminal = terminal.ok()?;
    // Whoever reads in the background is stopped.
    let foreground = rustix::termios::tcgetpgrp(&terminal).ok()?;
    (foreground == rustix::process::getpgrp()).then_some(terminal)
}

fn question_text(
    project: &TrustedProject<'_>,
    standing: &TrustStatus,
    shown: &TrustContents,
) -> String {
    let files = project.files();
    let mut lines = Vec::new();
    match standing {
        TrustStatus::Changed { since, .. } => {
            let since = clock::format_time(*since);
            lines.push(format!(
                "{BOLD}{files} has changed what it allows in [recovery]{BOLD:#} since you trusted it ({since}):"
            ));
            lines.extend(trust_contents::change_lines(&project.changes(standing)));
            lines.push(format!("{DIM}+ allows more, - allows less{DIM:#}"));
        }
        _ => {
            lines.push(format!(
                "{BOLD}{files} says in [recovery] which repairs may run.{BOLD:#} Nobody has trusted it yet."
            ));
            lines.extend(trust_contents::allowed_lines(&shown.section));
        }
    }
    lines.extend(shown.file_lines());
    let warnings = shown.warnings.iter();
    lines.extend(warnings.map(|warning| format!("{YELLOW}note{YELLOW:#}: {warning}")));
    lines.push(
        "Without trust it approves nothing; `unstuck trust` does the same at any time.".to_owned(),
    );
    lines.join("\n")
}

fn ask_on(mut terminal: File, text: &str, question: &str) -> Result<bool> {
    let mut to = AutoStream::new(terminal.try_clone()?, ColorChoice::Auto);
    write!(to, "{text}\n{question} [y/N] ")?;
    to.flush()?;
    Ok(is_yes(&read_line(&mut terminal)))
}

/// One line that is typed; nothing where the terminal is gone.
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

/// Everything but a clear yes is a no.
fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn everything_but_a_clear_yes_is_a_no() {
        for answer in ["y", "Y", " yes ", "YES"] {
            assert!(is_yes(answer), "{answer}");
        }
        for answer in ["", "n", "no", "yn", "yess", "j", "1", "y y"] {
            assert!(!is_yes(answer), "{answer}");
        }
    }

    #[test]
    fn one_line_is_read_and_no_more() {
        let mut typed = io::Cursor::new(b"yes\nrm -rf /\n".to_vec());
        assert_eq!(read_line(&mut typed), "yes");
        assert_eq!(read_line(&mut io::Cursor::new(b"y")), "y");
        assert_eq!(read_line(&mut io::empty()), "");
    }
}
