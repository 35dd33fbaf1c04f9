//! Asks the person at the terminal what is to be done with a preview.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::Result;
use unstuck_core::repair::needs_network;
use unstuck_repair::preview::Report;

use crate::messages::{self, Messages};
use crate::output::{BOLD, Output, YELLOW};

/// What is to be done with a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Keep,
    Drop,
    Apply,
}

/// What the person wants; where there is none, it is kept.
pub(super) fn choose(report: &Report, out: &mut Output) -> Result<Choice> {
    let here = io::stdin().is_terminal() && io::stdout().is_terminal();
    // What cannot be applied needs no question.
    if !here || !report.unsettled.is_empty() {
        return Ok(Choice::Keep);
    }
    loop {
        write!(
            out,
            "\n{BOLD}Apply it?{BOLD:#} [a]pply, [d]rop, [k]eep for later (default: keep) "
        )?;
        out.flush()?;
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line)?;
        match choice(&line) {
            Some(choice) => return Ok(choice),
            None if read == 0 => return Ok(Choice::Keep),
            None => {}
        }
    }
}

/// Whether the person lets a command use the network that is known to need it. Where nobody can be asked it may not, and a
/// line says so.
pub(super) fn for_network(command: &str, json: bool) -> Result<bool> {
    if json || !needs_network(command) {
        return Ok(false);
    }
    let mut stderr = Messages::auto();
    writeln!(
        stderr,
        "{YELLOW}This command fetches from the network, and a preview has none: it will probably fail.{YELLOW:#}"
    )?;
    if !io::stdin().is_terminal() || !messages::is_terminal() {
        writeln!(
            stderr,
            "hint: --network lets it; what it does there is real"
        )?;
        return Ok(false);
    }
    write!(
        stderr,
        "Let it use the network? What it does there is real. [y/N] "
    )?;
    stderr.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Reads an answer; none if it is not one.
fn choice(line: &str) -> Option<Choice> {
    match line.trim().to_lowercase().as_str() {
        "a" | "apply" => Some(Choice::Apply),
        "d" | "drop" => Some(Choice::Drop),
        "k" | "keep" => Some(Choice::Keep),
        "" if line.ends_with('\n') => Some(Choice::Keep),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_applied_unless_it_is_said() {
        assert_eq!(choice("a\n"), Some(Choice::Apply));
        assert_eq!(choice(" Apply \n"), Some(Choice::Apply));
        assert_eq!(choice("d\n"), Some(Choice::Drop));
        assert_eq!(choice("\n"), Some(Choice::Keep));
        for other in ["y\n", "yes\n", "ad\n", "", "no\n"] {
            assert_eq!(choice(other), None, "{other:?}");
        }
    }
}
