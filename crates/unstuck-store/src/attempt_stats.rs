//! Attempt counts for failure analytics: who failed, how, and with which prompt.
//!
//! Counted are attempts that ended by themselves and calls of unsupervised sessions. Calls of supervised runs are left
//! out: if one of them fails permanently, its attempt reports the failure.

use std::sync::Arc;

use unstuck_core::event::{ApiCallOutcome, ApiCallRecord, AttemptEnd, Event, EventRecord};
use unstuck_core::views::{NormalizedPrompt, RunSummary};
use unstuck_core::{Diagnosis, FailureKind};

use crate::rollup;

/// The dimensions of an attempt count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AttemptCountKey {
    pub(crate) hour: i64,
    pub(crate) project: String,
    pub(crate) model: String,
    pub(crate) kind: &'static str,
    /// Empty for attempts that did not fail.
    pub(crate) fingerprint: String,
    /// `None` if the prompt is unknown or the attempt did not fail.
    pub(crate) pattern: Option<Arc<NormalizedPrompt>>,
}

/// The totals under one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AttemptTally {
    pub(crate) count: u64,
    /// The end of the newest attempt, in milliseconds.
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

/// The diagnosed failure of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFailure {
    pub(crate) fingerprint: String,
    /// The error message, with variable parts masked.
    pub(crate) message: String,
}

impl CallFailure {
    /// Returns a failure of which only the kind is known.
    pub(crate) fn of_kind(kind: FailureKind) -> Self {
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
    /// Returns the attempt that this event ends.
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

    /// Returns the end time, in milliseconds.
    pub(crate) fn ended_at_ms(&self) -> i64 {
        self.recorded.at.millis()
    }

    /// Returns the key this attempt is counted under, given its run and its prompt.
    pub(crate) fn count_key(
        &self,
        view: Option<&RunSummary>,
        pattern: Option<Arc<NormalizedPrompt>>,
    ) -> AttemptCountKey {
        let known_model = || view.and_then(|view| view.model.as_ref());
        let model = self.end.model.as_ref().or_else(known_model);
        AttemptCountKey {
            hour: rollup::hour_number(self.recorded.at),
            project: view.map(|view| view.project.clone()).unwrap_or_default(),
            model: model.cloned().unwrap_or_default(),
            kind: self
                .failure
                .map_or(FailureKind::None, |failure| failure.kind)
                .name(),
            fingerprint: self
                .failure
                .map(|failure| failure.fingerprint.clone())
                .unwrap_or_default(),
            pattern,
        }
    }
}

/// Returns whether a call failed; `None` for canceled and rejected calls, which are not attempts.
pub(crate) fn is_failed_attempt(outcome: ApiCallOutcome) -> Option<bool> {
    match outcome {
        ApiCallOutcome::Answered | ApiCallOutcome::Recovered => Some(false),
        ApiCallOutcome::Failed | ApiCallOutcome::Truncated => Some(true),
        ApiCallOutcome::Cancelled | ApiCallOutcome::Refused => None,
    }
}

/// Returns the key for a call of an unsupervised session; `None` if the call is not counted.
pub(crate) fn call_count_key(
    call: &ApiCallRecord,
    project: &str,
    fault: Option<&CallFailure>,
) -> Option<AttemptCountKey> {
    let kind = if is_failed_attempt(call.outcome)? {
        call.kind.unwrap_or(FailureKind::Unknown)
    } else {
        FailureKind::None
    };
    Some(AttemptCountKey {
        hour: rollup::hour_number(call.at),
        project: project.to_owned(),
        model: call.model.clone().unwrap_or_default(),
        kind: kind.name(),
        fingerprint: fault
            .map(|fault| fault.fingerprint.clone())
            .unwrap_or_default(),
        pattern: None,
    })
}

/// Returns the prompt pattern of a session: its role's prompt, or the run's command line.
pub(crate) fn session_pattern(
    role: Option<NormalizedPrompt>,
    view: Option<&RunSummary>,
) -> NormalizedPrompt {
    role.unwrap_or_else(|| {
        let (command, agent) = match view {
            Some(view) => (&*view.command, view.agent.as_deref()),
            None => (&[][..], None),
        };
        NormalizedPrompt::from_command(command, agent)
    })
}
