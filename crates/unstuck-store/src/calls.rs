//! Calls of LLM APIs: what is kept of each, and what can be asked about them.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use unstuck_core::Timestamp;
use unstuck_core::event::{CallOutcome, CallRecord};
use unstuck_core::event::{RunId, SessionId};

use crate::append::Redact;

/// A name of a model or an upstream that is longer is no name; clients can send anything.
const LONGEST_NAME: usize = 200;

/// A call as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
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
pub(crate) struct Ready(pub(crate) Vec<CallRecord>);

impl Ready {
    /// What clients and upstreams call things is cut and redacted; nothing else in a record is theirs.
    pub(crate) fn new(mut calls: Vec<CallRecord>, redact: Option<&Redact>) -> Self {
        let mut names = Names {
            redact,
            known: HashMap::new(),
        };
        for call in &mut calls {
            names.clean(&mut call.upstream);
            call.asked_model
                .iter_mut()
                .for_each(|name| names.clean(name));
            call.model.iter_mut().for_each(|name| names.clean(name));
        }
        Self(calls)
    }
}

/// The same few names come again and again.
struct Names<'a> {
    redact: Option<&'a Redact>,
    known: HashMap<String, String>,
}

impl Names<'_> {
    fn clean(&mut self, name: &mut String) {
        if let Some(clean) = self.known.get(name) {
            name.clone_from(clean);
            return;
        }
        let given = std::mem::take(name);
        let mut text = Value::String(given.chars().take(LONGEST_NAME).collect());
        if let Some(redact) = self.redact {
            redact.apply(&mut text);
        }
        if let Value::String(clean) = text {
            name.clone_from(&clean);
            self.known.insert(given, clean);
        }
    }
}
