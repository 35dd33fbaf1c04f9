//! What a person sees of a run: the child's output untouched, one compact line for each thing that happens, and on a
//! terminal a live line below it.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use unstuck_core::duration::Human;
use unstuck_core::{Recorded, Recovery, Timestamp};
use unstuck_run::drive::{Channel, Reporter};

use super::passthrough::Passthrough;
use super::{story, wait_words};
use crate::environment;
use crate::messages::{self, Messages, redacted};
use crate::output::{DIM, columns};
use crate::session::Session;
use crate::show_text::wrapped;

/// Where the second line of something that is told begins: behind the name.
const INDENT: usize = 9;

/// How much a person wants to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Everything that happens.
    All,
    /// Everything that happens, and what the agents of a pipeline write.
    Agents,
    /// Nothing but what is wrong with unstuck itself.
    Nothing,
}

/// Passes on the child's output and tells what happens.
pub(crate) struct Screen {
    told: Told,
    /// What is put behind every command that is proposed, so that it finds the run.
    store_option: String,
    output: Passthrough,
    stderr: Messages,
    /// Whether the live line can be drawn at all.
    live: bool,
    /// Whether it stands below the output now.
    drawn: bool,
    /// Whether the child's output ended in the middle of a line.
    open_line: bool,
}

impl Screen {
    pub(crate) fn new(session: &Session<'_>, told: Told, tty: bool) -> Self {
        let on_terminal = messages::is_terminal() && can_redraw(environment::all());
        Self {
            told,
            store_option: session.store_option(),
            output: Passthrough::default(),
            stderr: Messages::new(session.color),
            live: on_terminal && told != Told::Nothing && !tty,
            drawn: false,
            open_line: false,
        }
    }

    /// Whether the last line on standard output has not come to its end.
    pub(super) fn is_line_open(&self) -> bool {
        self.output.is_line_open()
    }

    /// Tells one thing.
    pub(crate) fn say(&mut self, line: &str) {
        if self.told != Told::Nothing && !self.output.is_unread() {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        self.clear();
        self.end_line();
        // A secret would be hard to find in what is wrapped.
        let mut line = format!("{DIM}unstuck:{DIM:#} {}", redacted(line));
        if let Some(columns) = columns(rustix::stdio::stderr()) {
            line = wrapped(&line, columns, INDENT);
        }
        // Nothing can be done if nobody reads it.
        let _ = writeln!(self.stderr, "{line}");
    }

    /// Begins a new line where the child left one open, so that ours stands alone.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.open_line) {
            let _ = writeln!(self.stderr);
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(Messages::exact(), "\r\x1b[K");
        }
    }

    fn draw(&mut self, text: &str) {
        // A line that the child has begun is the child's.
        if self.open_line || !self.output.is_open() {
            return;
        }
        let width = columns(rustix::stdio::stderr())
            .unwrap_or(80)
            .saturating_sub(1);
        let text: String = text.chars().take(width).collect();
        let shown =
            write!(self.stderr, "\r\x1b[K{DIM}{text}{DIM:#}").and_then(|()| self.stderr.flush());
        self.drawn = shown.is_ok();
    }
}

impl Reporter for Screen {
    fn output(&mut self, channel: Channel, bytes: &[u8]) {
        self.clear();
        self.output.write(channel, bytes);
        self.open_line = self.live && bytes.last().is_some_and(|last| *last != b'\n');
    }

    fn happened(&mut self, events: &[Recorded], recovery: &Recovery) {
        for recorded in events {
            for line in story::lines(&recorded.event, recovery, &self.store_option) {
                self.say(&line);
            }
        }
    }

    fn running(&mut self, elapsed: Duration, recovery: &Recovery) {
        if self.live && elapsed >= Duration::from_secs(1) {
            let number = recovery.attempts();
            self.draw(&format!(
                "attempt {number} · {}{}",
                Human(elapsed),
                spent(recovery)
            ));
        }
    }

    fn waiting(&mut self, left: Duration, _until: Timestamp, recovery: &Recovery) {
        let now = match io::stdin().is_terminal() {
            true => "Enter tries now".to_owned(),
            false => format!("unstuck retry {} tries now", recovery.id().short()),
        };
        let line = wait_words::line(left, recovery);
        self.draw(&format!("{line} · {now}, Ctrl-C stops{}", spent(recovery)));
    }

    fn still_waiting(&mut self, left: Duration, until: Timestamp, recovery: &Recovery) {
        self.say(&wait_words::sign_of_life(
            left,
            until,
            recovery,
            &self.store_option,
        ));
    }

    fn calling(&mut self, elapsed: Duration, until: Timestamp, recovery: &Recovery) {
        if self.live {
            let number = recovery.attempts();
            let left = until.since(crate::clock::now().at);
            self.draw(&format!(
                "attempt {number} · {} · its API is asked again in {} (at {}){} · Ctrl-C stops",
                Human(elapsed),
                Human(left),
                crate::clock::shown(until),
                spent(recovery)
            ));
        }
    }

    fn live(&self) -> bool {
        self.live
    }

    fn is_open(&self) -> bool {
        self.output.is_open()
    }

    fn lost_output(&self) -> Option<String> {
        self.output.lost().map(str::to_owned)
    }

    fn note(&mut self, message: &str) {
        self.say(message);
    }

    fn warn(&mut self, message: &str) {
        self.line(&format!("warning: {message}"));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether a terminal can write over a line: one that is `dumb` or does not say what it is cannot.
pub(super) fn can_redraw(mut environment: impl Iterator<Item = (String, String)>) -> bool {
    environment.any(|(name, value)| name == "TERM" && !value.is_empty() && value != "dumb")
}

fn spent(recovery: &Recovery) -> String {
    match recovery.spent() {
        0.0 => String::new(),
        usd => format!(" · ${usd:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::can_redraw;

    #[test]
    fn a_terminal_that_cannot_write_over_a_line_gets_no_live_line() {
        let says = |term: &str| can_redraw([("TERM".to_owned(), term.to_owned())].into_iter());
        assert!(says("xterm-256color"));
        assert!(!says("dumb") && !says(""));
        assert!(!can_redraw(std::iter::empty()));
    }
}
