//! Screen of a pipeline: one line per event, optionally the output of the agents, and on a terminal a live block below.

mod event_lines;
mod live_block;
mod next_attempt_summary;
mod prefixed_output;
mod terminal_region;

use std::collections::BTreeMap;

use unstuck_core::event::{Event, RoleInstance, SessionId};
use unstuck_core::recovery_plan::PromptNoteTemplates;
use unstuck_core::views::RunProjection;
use unstuck_core::{EventRecord, SessionState, Timestamp};
use unstuck_run::runner::{OutputChannel, PipelineReporter, SessionWait};

use self::event_lines::PipelineEventLines;
use self::prefixed_output::PrefixedOutput;
use self::terminal_region::TerminalRegion;
use super::Verbosity;
use super::command_screen::can_redraw;
use super::wait_lines;
use crate::command_context::CommandContext;
use crate::environment_variables;
use crate::output::{DIM, TerminalSize, terminal_columns, terminal_size};
use crate::redacted_stderr::{self, RedactedStderr};
use crate::sanitized_text::wrap_words;

/// Indentation of continuation lines.
const INDENT: usize = 4;

/// Size used if the terminal does not report one.
const UNKNOWN_SIZE: TerminalSize = TerminalSize {
    columns: 80,
    rows: 24,
};

/// Reports the events of a pipeline on standard error.
pub(crate) struct PipelineScreen {
    verbosity: Verbosity,
    canvas: TerminalRegion<RedactedStderr>,
    event_lines: PipelineEventLines,
    agent_output: PrefixedOutput,
    /// True if the terminal supports the live block.
    live: bool,
    /// Time of the first reported event.
    since: Option<Timestamp>,
    /// The waits of API calls that the gateway holds, by session.
    held_calls: BTreeMap<SessionId, SessionWait>,
    /// The current live block.
    block: Vec<String>,
}

impl PipelineScreen {
    pub(crate) fn new(session: &CommandContext<'_>, verbosity: Verbosity) -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let on_terminal =
            redacted_stderr::is_terminal() && can_redraw(environment_variables::all());
        Self {
            verbosity,
            canvas: TerminalRegion::stderr(session.color),
            event_lines: PipelineEventLines::new(
                session.store_option(),
                here,
                PromptNoteTemplates::embedded(),
            )
            .with_starts(!on_terminal),
            agent_output: PrefixedOutput::default(),
            live: on_terminal && verbosity != Verbosity::Quiet,
            since: None,
            held_calls: BTreeMap::new(),
            block: Vec::new(),
        }
    }

    /// Writes lines above the live block.
    fn write_lines(&mut self, lines: &[String]) {
        if !lines.is_empty() {
            self.canvas.show(lines, &self.block, terminal_width());
        }
    }

    /// Updates the live block without drawing it.
    fn refresh_block(&mut self, run: &RunProjection, now: Timestamp) {
        let since = *self.since.get_or_insert(now);
        let over = run.summary.finished.is_some();
        self.block = if self.live && !over {
            let size = terminal_size(rustix::stdio::stderr()).unwrap_or(UNKNOWN_SIZE);
            live_block::block_lines(run, &self.event_lines, &self.held_calls, now, since, size)
        } else {
            Vec::new()
        };
    }
}

impl Drop for PipelineScreen {
    fn drop(&mut self) {
        self.canvas.clear(terminal_width());
    }
}

/// Returns the number of terminal columns.
fn terminal_width() -> usize {
    terminal_columns(rustix::stdio::stderr()).unwrap_or(UNKNOWN_SIZE.columns)
}

/// Wraps lines at the terminal width.
fn wrap_to_terminal(lines: Vec<String>) -> Vec<String> {
    let Some(columns) = terminal_columns(rustix::stdio::stderr()) else {
        return lines;
    };
    let fit = |line: String| wrap_words(&line, columns, INDENT);
    lines.into_iter().map(fit).collect()
}

impl PipelineReporter for PipelineScreen {
    fn output(&mut self, part: &RoleInstance, channel: OutputChannel, bytes: &[u8]) {
        if self.verbosity == Verbosity::WithAgentOutput {
            let lines = self.agent_output.complete_lines(part, channel, bytes);
            self.write_lines(&lines);
        }
    }

    fn on_events(&mut self, events: &[EventRecord], run: &RunProjection) {
        self.agent_output.set_pipeline(run);
        let mut lines = Vec::new();
        for recorded in events
            .iter()
            .filter(|recorded| ends_attempt(&recorded.event))
        {
            let session = run.session(recorded.event.session());
            let part = session.and_then(|session| session.part.as_ref());
            lines.extend(
                part.map(|part| self.agent_output.remaining_lines(part))
                    .unwrap_or_default(),
            );
        }
        let told = self
            .event_lines
            .lines(events, run, terminal_columns(rustix::stdio::stderr()));
        if self.verbosity != Verbosity::Quiet {
            lines.extend(wrap_to_terminal(told));
        }
        if let Some(last) = events.last() {
            self.refresh_block(run, last.at);
        }
        self.write_lines(&lines);
    }

    fn tick(&mut self, run: &RunProjection, now: Timestamp) {
        if self.live {
            self.refresh_block(run, now);
            self.canvas.show(&[], &self.block, terminal_width());
        }
    }

    fn is_live(&self) -> bool {
        self.live
    }

    fn on_held_call(&mut self, session: &SessionId, wait: Option<&SessionWait>) {
        match wait {
            Some(wait) => self.held_calls.insert(session.clone(), *wait),
            None => self.held_calls.remove(session),
        };
    }

    fn on_still_waiting(&mut self, role: &str, wait: &SessionWait, recovery: &SessionState) {
        // Already visible in the live block.
        if !self.is_live() {
            let told = wait_lines::heartbeat_line(wait, recovery, "");
            self.note(&format!("{role}: {told}"));
        }
    }

    fn note(&mut self, message: &str) {
        if self.verbosity != Verbosity::Quiet {
            self.write_lines(&wrap_to_terminal(vec![message.to_owned()]));
        }
    }

    fn warn(&mut self, message: &str) {
        self.write_lines(&wrap_to_terminal(vec![format!(
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
