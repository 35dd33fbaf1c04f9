//! Resolves a missing id with several candidates: a prompt on a terminal, an error with the list elsewhere.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};

use anyhow::Result;
use unstuck_run::nested_run_detection::detect_nested_run;

use crate::error_report::refusal;
use crate::redacted_stderr;

/// Maximum number of listed candidates.
const MAX_LINES: usize = 12;
/// Maximum length of the input.
const MAX_INPUT: usize = 20;

/// Candidates to choose from.
pub(crate) struct ChoicePrompt<'a> {
    /// Noun phrase for the candidates, as in "3 open requests in this project".
    pub(crate) what: &'a str,
    /// One line each, with the id first.
    pub(crate) lines: Vec<String>,
    /// Hint on how to name a candidate.
    pub(crate) hint: String,
}

impl ChoicePrompt<'_> {
    /// Prompts for a choice; without a terminal, returns an error with the list.
    pub(crate) fn choose(&self) -> Result<usize> {
        match terminal() {
            Some(terminal) => self.ask(terminal),
            None => Err(self.ambiguity_error("which one?")),
        }
    }

    fn ask(&self, mut terminal: File) -> Result<usize> {
        let mut text = format!("{} {}:\n", self.lines.len(), self.what);
        for (at, line) in self.lines.iter().take(MAX_LINES).enumerate() {
            text.push_str(&format!("{:>3}  {line}\n", at + 1));
        }
        text.push_str("Which one? [number, Enter to cancel] ");
        terminal.write_all(text.as_bytes())?;
        terminal.flush()?;
        let typed = read_line(&mut terminal);
        let number = typed.trim().parse::<usize>().ok();
        let chosen = number.and_then(|number| number.checked_sub(1));
        chosen
            .filter(|at| *at < self.lines.len().min(MAX_LINES))
            .ok_or_else(|| refusal("nothing selected; no changes made", self.hint.clone()))
    }

    fn ambiguity_error(&self, question: &str) -> anyhow::Error {
        let count = self.lines.len();
        let mut text = format!("{count} {}; {question}", self.what);
        for line in self.lines.iter().take(MAX_LINES) {
            text.push_str(&format!("\n  {line}"));
        }
        if count > MAX_LINES {
            text.push_str(&format!("\n  … and {} more", count - MAX_LINES));
        }
        refusal(text, self.hint.clone())
    }
}

/// Opens the controlling terminal if the user can be prompted.
fn terminal() -> Option<File> {
    if !io::stdin().is_terminal()
        || !redacted_stderr::is_terminal()
        || detect_nested_run().is_some()
    {
        return None;
    }
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let terminal = terminal.ok()?;
    // Reading in the background would stop the process.
    let foreground = rustix::termios::tcgetpgrp(&terminal).ok()?;
    (foreground == rustix::process::getpgrp()).then_some(terminal)
}

/// Reads a typed line; empty if the terminal is gone.
fn read_line(from: &mut impl Read) -> String {
    let mut typed = Vec::new();
    let mut byte = [0];
    while typed.len() < MAX_INPUT && from.read(&mut byte).is_ok_and(|count| count == 1) {
        if byte[0] == b'\n' {
            break;
        }
        typed.push(byte[0]);
    }
    String::from_utf8_lossy(&typed).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_list_is_truncated_with_the_number_of_omitted_lines() {
        let candidates = ChoicePrompt {
            what: "runs",
            lines: (0..MAX_LINES + 3).map(|at| format!("id{at}")).collect(),
            hint: "name it".into(),
        };
        let text = candidates.ambiguity_error("which one?").to_string();
        assert!(text.starts_with("15 runs; which one?\n  id0\n"), "{text}");
        assert!(text.ends_with("id11\n  … and 3 more"), "{text}");
    }
}
