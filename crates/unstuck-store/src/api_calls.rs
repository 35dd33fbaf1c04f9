//! Stored LLM API calls and their filters.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use unstuck_core::Timestamp;
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord};
use unstuck_core::event::{RunId, SessionId};

use crate::append_request::EventPayloadRedactor;

/// The maximum length of a model or upstream name; clients can send anything.
const MAX_NAME_CHARS: usize = 200;

/// A stored call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredCall {
    /// The call id.
    pub id: String,
    /// The project root; empty if there is none.
    pub project: String,
    /// The call record.
    #[serde(flatten)]
    pub record: ApiCallRecord,
}

/// A filter for calls, newest first; unset fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// The run.
    pub run: Option<RunId>,
    /// The session.
    pub session: Option<SessionId>,
    /// The project root.
    pub project: Option<String>,
    /// The earliest start time.
    pub since: Option<Timestamp>,
    /// The latest start time, exclusive.
    pub until: Option<Timestamp>,
    /// The accepted outcomes; empty means any.
    pub outcome: Vec<ApiCallOutcome>,
    /// The maximum number of results.
    pub limit: Option<usize>,
}

/// Calls that are ready to be written.
#[derive(Debug)]
pub(crate) struct PreparedCalls(pub(crate) Vec<ApiCallRecord>);

impl PreparedCalls {
    /// Cuts and redacts the model and upstream names; nothing else in a record comes from clients or upstreams.
    pub(crate) fn new(
        mut calls: Vec<ApiCallRecord>,
        redact: Option<&EventPayloadRedactor>,
    ) -> Self {
        let mut names = NameCleaner {
            redact,
            cleaned: HashMap::new(),
        };
        for call in &mut calls {
            names.clean_name(&mut call.upstream);
            call.requested_model
                .iter_mut()
                .for_each(|name| names.clean_name(name));
            call.model
                .iter_mut()
                .for_each(|name| names.clean_name(name));
        }
        Self(calls)
    }
}

/// Cleans names, with a cache because the same few names recur.
struct NameCleaner<'a> {
    redact: Option<&'a EventPayloadRedactor>,
    cleaned: HashMap<String, String>,
}

impl NameCleaner<'_> {
    fn clean_name(&mut self, name: &mut String) {
        if let Some(clean) = self.cleaned.get(name) {
            name.clone_from(clean);
            return;
        }
        let given = std::mem::take(name);
        let mut text = Value::String(given.chars().take(MAX_NAME_CHARS).collect());
        if let Some(redact) = self.redact {
            redact.apply(&mut text);
        }
        if let Value::String(clean) = text {
            name.clone_from(&clean);
            self.cleaned.insert(given, clean);
        }
    }
}
