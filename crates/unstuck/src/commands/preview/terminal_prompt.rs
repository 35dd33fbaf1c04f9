//! Terminal prompt for the next step after a preview.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::Result;
use unstuck_core::repair::needs_network;
use unstuck_repair::preview::PreviewReport;

use crate::output::{BOLD, Output, YELLOW};
use crate::redacted_stderr::{self, RedactedStderr};

/// The chosen next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreviewChoice {
    Keep,
    Drop,
    Apply,
}

/// Asks for the next step; keeps the preview if there is no answer.
pub(super) fn choose(report: &PreviewReport, out: &mut Output) -> Result<PreviewChoice> {
    let here = io::stdin().is_terminal() && io::stdout().is_terminal();
    // A preview that cannot be applied needs no prompt.
    if !here || !report.changed_during_run.is_empty() {
        return Ok(PreviewChoice::Keep);
    }
    loop {
        write!(
            out,
            "\n{BOLD}Apply it?{BOLD:#} [a]pply, [d]rop, [k]eep for later (default: keep) "
        )?;
        out.flush()?;
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line)?;
        match parse_choice(&line) {
            Some(choice) => return Ok(choice),
            None if read == 0 => return Ok(PreviewChoice::Keep),
            None => {}
        }
    }
}

/// Asks for network access if the command is known to need it. Without a terminal, access is denied and a line says so.
pub(super) fn confirm_network(command: &str, json: bool) -> Result<bool> {
    if json || !needs_network(command) {
        return Ok(false);
    }
    let mut stderr = RedactedStderr::auto();
    writeln!(
        stderr,
        "{YELLOW}This command needs network access, which previews do not have by default: it will probably fail.{YELLOW:#}"
    )?;
    if !io::stdin().is_terminal() || !redacted_stderr::is_terminal() {
        writeln!(
            stderr,
            "hint: --network allows it; network effects are real"
        )?;
        return Ok(false);
    }
    write!(
        stderr,
        "Allow network access? Network effects are real. [y/N] "
    )?;
    stderr.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Parses an answer; none if it is invalid.
fn parse_choice(line: &str) -> Option<PreviewChoice> {
    match line.trim().to_lowercase().as_str() {
        "a" | "apply" => Some(PreviewChoice::Apply),
        "d" | "drop" => Some(PreviewChoice::Drop),
        "k" | "keep" => Some(PreviewChoice::Keep),
        "" if line.ends_with('\n') => Some(PreviewChoice::Keep),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preview_is_applied_only_on_explicit_request() {
        assert_eq!(parse_choice("a\n"), Some(PreviewChoice::Apply));
        assert_eq!(parse_choice(" Apply \n"), Some(PreviewChoice::Apply));
        assert_eq!(parse_choice("d\n"), Some(PreviewChoice::Drop));
        assert_eq!(parse_choice("\n"), Some(PreviewChoice::Keep));
        for other in ["y\n", "yes\n", "ad\n", "", "no\n"] {
            assert_eq!(parse_choice(other), None, "{other:?}");
        }
    }
}
