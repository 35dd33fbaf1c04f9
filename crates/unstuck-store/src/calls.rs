//! Calls of LLM APIs: what is kept of each, and what can be asked about them.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use unstuck_core::Timestamp;
use unstuck_core::event::{CallOutcome, CallRecord};
use unstuck_core::event::{RunId, SessionId};

use crate::append::PayloadRedactor;

/// A name of a model or an upstream that is longer is no name; clients can send anything.
const MAX_NAME_CHARS: usize = 200;

/// A call as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredCall {
    /// Its id.
    pub id: String,
    /// The root folder of its project; empty where there is none.
    pub project: String,
    /// What was recorded.
    #[serde(flatten)]
    pub record: CallRecord,
}

/// Which calls are asked for; all that is left out does not matter. The newest come first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Their run.
    pub run: Option<RunId>,
    /// Their session.
    pub session: Option<SessionId>,
    /// The root folder of their project.
    pub project: Option<String>,
    /// They began then or later.
    pub since: Option<Timestamp>,
    /// They began before.
    pub until: Option<Timestamp>,
    /// What came of them: one of these, or anything if there are none.
    pub outcome: Vec<CallOutcome>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Calls whose texts are ready to be written.
#[derive(Debug)]
pub(crate) struct PreparedCalls(pub(crate) Vec<CallRecord>);

impl PreparedCalls {
    /// What clients and upstreams call things is cut and redacted; nothing else in a record is theirs.
    pub(crate) fn new(mut calls: Vec<CallRecord>, redact: Option<&PayloadRedactor>) -> Self {
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

/// The same few names come again and again.
struct NameCleaner<'a> {
    redact: Option<&'a PayloadRedactor>,
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
