//! What a person sees of a pipeline: one line for each thing that happens, what the agents write if they want it, and
//! on a terminal a live block below.

mod block;
mod canvas;
mod change_words;
mod passed;
mod story;

use std::time::Duration;

use unstuck_core::action::Prompts;
use unstuck_core::episode::RunFold;
use unstuck_core::event::{Event, Part};
use unstuck_core::{Recorded, Recovery, Timestamp};
use unstuck_run::drive::{Channel, RunReporter};

use self::canvas::Canvas;
use self::passed::Passed;
use self::story::Story;
use super::Told;
use super::screen::can_redraw;
use super::wait_words;
use crate::environment;
use crate::messages::{self, Messages};
use crate::output::{DIM, Size, columns, size};
use crate::session::Session;
use crate::show_text::wrapped;

/// Where the second line of something that is told begins.
const INDENT: usize = 4;

/// The size of a terminal that does not tell it.
const UNKNOWN_SIZE: Size = Size {
    columns: 80,
    rows: 24,
};

/// Tells what happens in a pipeline, on standard error.
pub(crate) struct PipelineScreen {
    told: Told,
    canvas: Canvas<Messages>,
    story: Story,
    passed: Passed,
    /// Whether the live block can be drawn at all.
    live: bool,
    /// When the first thing happened that was told.
    since: Option<Timestamp>,
    /// The live block, as it is to stand below the lines.
    block: Vec<String>,
}

impl PipelineScreen {
    pub(crate) fn new(session: &Session<'_>, told: Told) -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let on_terminal = messages::is_terminal() && can_redraw(environment::all());
        Self {
            told,
            canvas: Canvas::stderr(session.color),
            story: Story::new(session.store_option(), here, Prompts::embedded())
                .telling_starts(!on_terminal),
            passed: Passed::default(),
            live: on_terminal && told != Told::Nothing,
            since: None,
            block: Vec::new(),
        }
    }

    /// Writes lines above the live block.
    fn write(&mut self, lines: &[String]) {
        if !lines.is_empty() {
            self.canvas.show(lines, &self.block, width());
        }
    }

    /// Brings the live block up to date, without drawing it.
    fn look(&mut self, run: &RunFold, now: Timestamp) {
        let since = *self.since.get_or_insert(now);
        let over = run.view.finished.is_some();
        self.block = if self.live && !over {
            let size = size(rustix::stdio::stderr()).unwrap_or(UNKNOWN_SIZE);
            block::lines(run, &self.story, now, since, size)
        } else {
            Vec::new()
        };
    }
}

impl Drop for PipelineScreen {
    fn drop(&mut self) {
        self.canvas.clear(width());
    }
}

/// How many columns the terminal has.
fn width() -> usize {
    columns(rustix::stdio::stderr()).unwrap_or(UNKNOWN_SIZE.columns)
}

/// Lines that fit the terminal, broken where it ends.
fn fitted(lines: Vec<String>) -> Vec<String> {
    let Some(columns) = columns(rustix::stdio::stderr()) else {
        return lines;
    };
    let fit = |line: String| wrapped(&line, columns, INDENT);
    lines.into_iter().map(fit).collect()
}

impl RunReporter for PipelineScreen {
    fn output(&mut self, part: &Part, channel: Channel, bytes: &[u8]) {
        if self.told == Told::Agents {
            let lines = self.passed.lines(part, channel, bytes);
            self.write(&lines);
        }
    }

    fn happened(&mut self, events: &[Recorded], run: &RunFold) {
        self.passed.know(run);
        let mut lines = Vec::new();
        for recorded in events
            .iter()
            .filter(|recorded| ends_attempt(&recorded.event))
        {
            let session = run.session(recorded.event.session());
            let part = session.and_then(|session| session.part.as_ref());
            lines.extend(part.map(|part| self.passed.rest(part)).unwrap_or_default());
        }
        let told = self
            .story
            .lines(events, run, columns(rustix::stdio::stderr()));
        if self.told != Told::Nothing {
            lines.extend(fitted(told));
        }
        if let Some(last) = events.last() {
            self.look(run, last.at);
        }
        self.write(&lines);
    }

    fn tick(&mut self, run: &RunFold, now: Timestamp) {
        if self.live {
            self.look(run, now);
            self.canvas.show(&[], &self.block, width());
        }
    }

    fn live(&self) -> bool {
        self.live
    }

    fn still_waiting(&mut self, role: &str, left: Duration, until: Timestamp, recovery: &Recovery) {
        // The live block shows it by itself.
        if !self.live() {
            let told = wait_words::sign_of_life(left, until, recovery, "");
            self.note(&format!("{role}: {told}"));
        }
    }

    fn note(&mut self, message: &str) {
        if self.told != Told::Nothing {
            self.write(&fitted(vec![message.to_owned()]));
        }
    }

    fn warn(&mut self, message: &str) {
        self.write(&fitted(vec![format!(
            "{DIM}unstuck:{DIM:#} warning: {message}"
        )]));
    }
}

fn ends_attempt(event: &Event) -> bool {
    matches!(
        event,
        Event::AttemptFailed(_) | Event::AttemptSucceeded(_) | Event::AttemptInterrupted(_)
    )
}
