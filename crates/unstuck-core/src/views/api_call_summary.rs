//! Summaries of API calls that needed recovery: their failures, decisions and outcomes.

use serde::Serialize;

use crate::event::{ApiCallRecord, CallFailed, Event, EventRecord, SkippedUpstream};
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// An API call that needed recovery.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ApiCallRecoverySummary {
    /// The id of the call.
    pub id: String,
    /// The failed API attempts.
    #[serde(rename = "failed_attempts", alias = "tries")]
    pub failed_attempts: Vec<FailedApiAttempt>,
    /// The end of the call; none while it is active, or if the end was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "finished", alias = "ended")]
    pub finished: Option<ApiCallRecord>,
}

/// A failed API attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedApiAttempt {
    /// The time of the failure.
    pub at: Timestamp,
    /// The number of the API attempt, from 1.
    pub number: u32,
    /// The upstream.
    pub upstream: String,
    /// The requested model.
    pub model: Option<String>,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The failure kind.
    pub kind: FailureKind,
    /// The failure message, in one sentence.
    pub message: String,
    /// The reason of the decision, in one sentence.
    pub reason: String,
    /// The upstream used instead.
    pub fallback: Option<String>,
    /// The fallback upstreams that were skipped, in the order considered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "skipped", alias = "passed_over")]
    pub skipped_upstreams: Vec<SkippedUpstream>,
}

impl FailedApiAttempt {
    fn from_event(call: &CallFailed, at: Timestamp) -> Self {
        Self {
            at,
            number: call.number,
            upstream: call.upstream.clone(),
            model: call.model.clone(),
            status: call.status,
            kind: call.diagnosis.kind,
            message: call.diagnosis.message.clone(),
            reason: call.decision.reason.clone(),
            fallback: call.fallback.clone(),
            skipped_upstreams: call.skipped_upstreams.clone(),
        }
    }
}

impl ApiCallRecoverySummary {
    /// Returns the time of the first failure, or of the request.
    pub fn started_at(&self) -> Option<Timestamp> {
        let asked = self.finished.as_ref().map(|end| end.at);
        self.failed_attempts.first().map(|first| first.at).or(asked)
    }
}

/// Applies an event to the calls; adds a call if it is new.
pub(super) fn apply(calls: &mut Vec<ApiCallRecoverySummary>, recorded: &EventRecord) {
    match &recorded.event {
        Event::CallFailed(failed) => {
            let failed_try = FailedApiAttempt::from_event(failed, recorded.at);
            summary_of(calls, &failed.call)
                .failed_attempts
                .push(failed_try);
        }
        Event::CallFinished(end) => summary_of(calls, &end.call).finished = Some((**end).clone()),
        _ => {}
    }
}

/// Returns the summary of a call; creates it if it is new.
fn summary_of<'a>(
    calls: &'a mut Vec<ApiCallRecoverySummary>,
    id: &str,
) -> &'a mut ApiCallRecoverySummary {
    let known = calls.iter().rposition(|one| one.id == id);
    let place = known.unwrap_or_else(|| {
        calls.push(ApiCallRecoverySummary {
            id: id.to_owned(),
            failed_attempts: Vec::new(),
            finished: None,
        });
        calls.len() - 1
    });
    &mut calls[place]
}
