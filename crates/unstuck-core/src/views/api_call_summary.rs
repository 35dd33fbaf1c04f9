//! The calls of LLM APIs that did not simply work: what failed, what was done about it, and how they ended.

use serde::Serialize;

use crate::event::{CallFailed, CallRecord, Event, EventRecord, SkippedUpstream};
use crate::failure::Kind;
use crate::time::Timestamp;

/// A call of an LLM API that did not simply work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ApiCallSummary {
    /// Its id.
    pub id: String,
    /// The tries that failed.
    #[serde(rename = "tries")]
    pub failed_attempts: Vec<FailedApiAttempt>,
    /// How it ended; none while it goes on, or if nobody saw its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "ended")]
    pub finished: Option<CallRecord>,
}

/// One try that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedApiAttempt {
    /// When.
    pub at: Timestamp,
    /// The number of the try, from 1.
    pub number: u32,
    /// Who was asked.
    pub upstream: String,
    /// The model that was asked.
    pub model: Option<String>,
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// What it was found to be.
    pub kind: Kind,
    /// What happened, in one sentence.
    pub message: String,
    /// What was decided, in one sentence.
    pub reason: String,
    /// Who was asked instead.
    pub fallback: Option<String>,
    /// Who could have been asked instead and was not, in the order in which they were looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "passed_over")]
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

impl ApiCallSummary {
    /// When something first went wrong, or when it was asked.
    pub fn started_at(&self) -> Option<Timestamp> {
        let asked = self.finished.as_ref().map(|end| end.at);
        self.failed_attempts.first().map(|first| first.at).or(asked)
    }
}

/// Takes in what happened to one of these calls, or to a new one.
pub(super) fn apply(calls: &mut Vec<ApiCallSummary>, recorded: &EventRecord) {
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

/// The story of a call; it begins where there is none yet.
fn summary_of<'a>(calls: &'a mut Vec<ApiCallSummary>, id: &str) -> &'a mut ApiCallSummary {
    let known = calls.iter().rposition(|one| one.id == id);
    let place = known.unwrap_or_else(|| {
        calls.push(ApiCallSummary {
            id: id.to_owned(),
            failed_attempts: Vec::new(),
            finished: None,
        });
        calls.len() - 1
    });
    &mut calls[place]
}
