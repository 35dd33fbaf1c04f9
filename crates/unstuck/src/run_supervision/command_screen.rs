//! Screen of a single command: the child's output unchanged, one line per event, and on a terminal a live line below.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use unstuck_core::duration::HumanDuration;
use unstuck_core::{EventRecord, SessionState};
use unstuck_run::runner::{OutputChannel, SessionReporter, SessionWait};

use super::output_passthrough::Passthrough;
use super::{event_lines, wait_lines};
use crate::command_context::CommandContext;
use crate::environment_variables;
use crate::output::{DIM, terminal_columns};
use crate::redacted_stderr::{self, RedactedStderr, redacted};
use crate::sanitized_text::wrap_words;

/// Column where continuation lines begin, after the name.
const INDENT: usize = 9;

/// Verbosity of unstuck's own output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// All events.
    All,
    /// All events and the output of the agents of a pipeline.
    WithAgentOutput,
    /// Only errors of unstuck itself.
    Quiet,
}

/// Passes on the child's output and reports events.
pub(crate) struct CommandScreen {
    verbosity: Verbosity,
    /// Store option appended to suggested commands, so that they find the run.
    store_option: String,
    output: Passthrough,
    stderr: RedactedStderr,
    /// True if the terminal supports the live line.
    live: bool,
    /// True if the child draws on the terminal that our lines go to.
    shares_terminal: bool,
    /// True while the live line is drawn.
    drawn: bool,
    /// True if the child's output ends in the middle of a line.
    has_open_line: bool,
}

impl CommandScreen {
    pub(crate) fn new(session: &CommandContext<'_>, verbosity: Verbosity, tty: bool) -> Self {
        let on_terminal =
            redacted_stderr::is_terminal() && can_redraw(environment_variables::all());
        Self {
            verbosity,
            store_option: session.store_option(),
            output: Passthrough::default(),
            stderr: RedactedStderr::new(session.color),
            live: on_terminal && verbosity != Verbosity::Quiet && !tty,
            shares_terminal: tty && redacted_stderr::is_terminal(),
            drawn: false,
            has_open_line: false,
        }
    }

    /// True if the last line on standard output is incomplete.
    pub(super) fn is_line_open(&self) -> bool {
        self.output.is_line_open()
    }

    /// Prints one line.
    pub(crate) fn print_line(&mut self, line: &str) {
        if self.verbosity != Verbosity::Quiet && !self.output.is_unread() {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        self.clear();
        self.end_line();
        // Redact before wrapping: a secret could not be found in wrapped text.
        let mut line = format!("{DIM}unstuck:{DIM:#} {}", redacted(line));
        if let Some(columns) = terminal_columns(rustix::stdio::stderr()) {
            line = wrap_words(&line, columns, INDENT);
        }
        // If standard error is closed, nothing is left to try.
        let _ = writeln!(self.stderr, "{line}");
    }

    /// Ends a line that the child left open, so that ours starts on a new line.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.has_open_line) {
            let _ = writeln!(self.stderr);
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(RedactedStderr::raw(), "\r\x1b[K");
        }
    }

    fn draw(&mut self, text: &str) {
        // An open line belongs to the child.
        if self.has_open_line || !self.output.is_open() {
            return;
        }
        let width = terminal_columns(rustix::stdio::stderr())
            .unwrap_or(80)
            .saturating_sub(1);
        let text: String = text.chars().take(width).collect();
        let shown =
            write!(self.stderr, "\r\x1b[K{DIM}{text}{DIM:#}").and_then(|()| self.stderr.flush());
        self.drawn = shown.is_ok();
    }
}

impl SessionReporter for CommandScreen {
    fn output(&mut self, channel: OutputChannel, bytes: &[u8]) {
        self.clear();
        self.output.write(channel, bytes);
        self.has_open_line = self.live && bytes.last().is_some_and(|last| *last != b'\n');
    }

    fn on_events(&mut self, events: &[EventRecord], recovery: &SessionState) {
        for recorded in events {
            for line in event_lines::event_lines(&recorded.event, recovery, &self.store_option) {
                self.print_line(&line);
            }
        }
    }

    fn on_running(&mut self, elapsed: Duration, recovery: &SessionState) {
        if self.live && elapsed >= Duration::from_secs(1) {
            let number = recovery.attempt_count();
            self.draw(&format!(
                "attempt {number} · {}{}",
                HumanDuration(elapsed),
                spent_text(recovery)
            ));
        }
    }

    fn on_waiting(&mut self, wait: &SessionWait, recovery: &SessionState) {
        let now = if !wait_lines::can_be_ended(wait) {
            String::new()
        } else if io::stdin().is_terminal() {
            "Enter to retry, ".to_owned()
        } else {
            format!("unstuck retry {} to retry, ", recovery.id().short())
        };
        let line = wait_lines::countdown_line(wait, recovery.attempt_count());
        self.draw(&format!(
            "{line} · {now}Ctrl-C to stop{}",
            spent_text(recovery)
        ));
    }

    fn on_still_waiting(&mut self, wait: &SessionWait, recovery: &SessionState) {
        // Only between attempts does nobody else draw there.
        if !(wait.is_held_call && self.shares_terminal) {
            let line = wait_lines::heartbeat_line(wait, recovery, &self.store_option);
            self.print_line(&line);
        }
    }

    fn is_live(&self) -> bool {
        self.live
    }

    fn is_open(&self) -> bool {
        self.output.is_open()
    }

    fn lost_output(&self) -> Option<String> {
        self.output.loss_reason().map(str::to_owned)
    }

    fn note(&mut self, message: &str) {
        self.print_line(message);
    }

    fn warn(&mut self, message: &str) {
        self.line(&format!("warning: {message}"));
    }
}

impl Drop for CommandScreen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// True if the terminal can redraw a line: not if its type is `dumb` or unknown.
pub(super) fn can_redraw(mut environment: impl Iterator<Item = (String, String)>) -> bool {
    environment.any(|(name, value)| name == "TERM" && !value.is_empty() && value != "dumb")
}

fn spent_text(recovery: &SessionState) -> String {
    match recovery.spent() {
        0.0 => String::new(),
        usd => format!(" · ${usd:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::can_redraw;

    #[test]
    fn dumb_terminal_gets_no_live_line() {
        let says = |term: &str| can_redraw([("TERM".to_owned(), term.to_owned())].into_iter());
        assert!(says("xterm-256color"));
        assert!(!says("dumb") && !says(""));
        assert!(!can_redraw(std::iter::empty()));
    }
}
