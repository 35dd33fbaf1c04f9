//! What a person sees of a pipeline: one line for each thing that happens, and what the agents write if they want it.

mod change_words;
mod passed;
mod story;

use std::io::{self, Write};

use anstream::AutoStream;
use unstuck_core::Recorded;
use unstuck_core::action::Prompts;
use unstuck_core::episode::RunFold;
use unstuck_core::event::{Event, Part};
use unstuck_run::drive::{Channel, RunReporter};

use self::passed::Passed;
use self::story::Story;
use super::{Session, Told};
use crate::output::{DIM, columns};
use crate::show_text::wrapped;

/// Where the second line of something that is told begins.
const INDENT: usize = 4;

/// Tells what happens in a pipeline, on standard error.
pub(crate) struct PipelineScreen {
    told: Told,
    stderr: AutoStream<io::Stderr>,
    story: Story,
    passed: Passed,
}

impl PipelineScreen {
    pub(crate) fn new(session: &Session<'_>, told: Told) -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        Self {
            told,
            stderr: AutoStream::new(io::stderr(), session.color.choice()),
            story: Story::new(session.store_option(), here, Prompts::embedded()),
            passed: Passed::default(),
        }
    }

    fn write(&mut self, lines: &[String]) {
        let mut text = lines.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        // The work goes on even if nobody reads how it is going.
        let _ = self.stderr.write_all(text.as_bytes());
    }
}

/// Lines that fit the terminal, broken where it ends.
fn fitted(lines: Vec<String>) -> Vec<String> {
    let Some(columns) = columns(io::stderr()) else {
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
        let told = self.story.lines(events, run, columns(io::stderr()));
        if self.told != Told::Nothing {
            lines.extend(fitted(told));
            self.write(&lines);
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
