//! What is counted about every try for the analytics of failures: who failed, at what, with which prompt.
//!
//! A try is an attempt that ended by itself, or a call of a session that nobody drives. The calls of a run that is driven
//! do not count: when one of them fails for good, the attempt that made it tells so.

use std::sync::Arc;

use unstuck_core::event::{AttemptEnd, CallOutcome, CallRecord, Event, EventRecord};
use unstuck_core::views::{PromptPattern, RunSummary};
use unstuck_core::{Diagnosis, Kind};

use crate::rollup;

/// What is counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AttemptCountKey {
    pub(crate) hour: i64,
    pub(crate) project: String,
    pub(crate) model: String,
    pub(crate) kind: &'static str,
    /// Nothing for what did not fail.
    pub(crate) fingerprint: String,
    /// None where the prompt is not known, and for what did not fail.
    pub(crate) pattern: Option<Arc<PromptPattern>>,
}

/// What was counted under one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AttemptTally {
    pub(crate) count: u64,
    /// When the last of them ended, in milliseconds.
    pub(crate) newest: i64,
}

impl AttemptTally {
    pub(crate) fn add(&mut self, at: i64) {
        self.newest = match self.count {
            0 => at,
            _ => self.newest.max(at),
        };
        self.count += 1;
    }
}

/// What a failed call was found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFailure {
    pub(crate) fingerprint: String,
    /// What was said, with what varies masked.
    pub(crate) message: String,
}

impl CallFailure {
    /// A failure of which only the kind is known.
    pub(crate) fn of_kind(kind: Kind) -> Self {
        Self {
            fingerprint: kind.name().to_owned(),
            message: kind.name().to_owned(),
        }
    }
}

/// An attempt that ended by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedAttempt<'a> {
    recorded: &'a EventRecord,
    pub(crate) end: &'a AttemptEnd,
    pub(crate) failure: Option<&'a Diagnosis>,
}

impl<'a> EndedAttempt<'a> {
    /// The attempt whose end this event is.
    pub(crate) fn from_event(recorded: &'a EventRecord) -> Option<Self> {
        let (end, failure) = match &recorded.event {
            Event::AttemptFailed(attempt) => (&attempt.end, Some(&attempt.diagnosis)),
            Event::AttemptSucceeded(attempt) => (&attempt.end, None),
            _ => return None,
        };
        Some(Self {
            recorded,
            end,
            failure,
        })
    }

    /// When it ended, in milliseconds.
    pub(crate) fn ended_at_ms(&self) -> i64 {
        self.recorded.at.millis()
    }

    /// Where it counts, given its run and its prompt.
    pub(crate) fn count_key(
        &self,
        view: Option<&RunSummary>,
        pattern: Option<Arc<PromptPattern>>,
    ) -> AttemptCountKey {
        let known_model = || view.and_then(|view| view.model.as_ref());
        let model = self.end.model.as_ref().or_else(known_model);
        AttemptCountKey {
            hour: rollup::hour_of(self.recorded.at),
            project: view.map(|view| view.project.clone()).unwrap_or_default(),
            model: model.cloned().unwrap_or_default(),
            kind: self
                .failure
                .map_or(Kind::None, |failure| failure.kind)
                .name(),
            fingerprint: self
                .failure
                .map(|failure| failure.fingerprint.clone())
                .unwrap_or_default(),
            pattern,
        }
    }
}

/// Whether a call failed, if it counts as a try at all: who goes away and who is not let through has tried nothing.
pub(crate) fn is_failed_attempt(outcome: CallOutcome) -> Option<bool> {
    match outcome {
        CallOutcome::Answered | CallOutcome::Recovered => Some(false),
        CallOutcome::Failed | CallOutcome::Truncated => Some(true),
        CallOutcome::Cancelled | CallOutcome::Refused => None,
    }
}

/// Where a call of a session that nobody drives counts, if it does.
pub(crate) fn call_count_key(
    call: &CallRecord,
    project: &str,
    fault: Option<&CallFailure>,
) -> Option<AttemptCountKey> {
    let kind = if is_failed_attempt(call.outcome)? {
        call.kind.unwrap_or(Kind::Unknown)
    } else {
        Kind::None
    };
    Some(AttemptCountKey {
        hour: rollup::hour_of(call.at),
        project: project.to_owned(),
        model: call.model.clone().unwrap_or_default(),
        kind: kind.name(),
        fingerprint: fault
            .map(|fault| fault.fingerprint.clone())
            .unwrap_or_default(),
        pattern: None,
    })
}

/// The prompt of a session: what its role was told, or the command line of the run.
pub(crate) fn session_pattern(
    role: Option<PromptPattern>,
    view: Option<&RunSummary>,
) -> PromptPattern {
    role.unwrap_or_else(|| {
        let (command, agent) = match view {
            Some(view) => (&*view.command, view.agent.as_deref()),
            None => (&[][..], None),
        };
        PromptPattern::from_command(command, agent)
    })
}
