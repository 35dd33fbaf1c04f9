//! The signal of a detected loop, and its diagnosis.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::kind::LoopKind;
use super::loop_patterns::LoopPatterns;
use crate::diagnosis::{Diagnosis, Evidence, fingerprint};
use crate::failure::{FailureKind, FailureLayer};
use crate::knowledge::DiagnosisKnowledge;

/// Maximum number of characters shown of a text.
const MAX_SHOWN_LEN: usize = 160;

/// A detected loop. Its display is a sentence about "it", the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopSignal {
    /// The kind of loop.
    #[serde(rename = "kind", alias = "what")]
    pub kind: LoopKind,
    /// The number of repetitions.
    pub times: u32,
    /// An excerpt of what was repeated: the call, the text, the question, the failure.
    pub repeated: String,
    /// An excerpt of the result each time; empty if it is irrelevant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
}

impl LoopSignal {
    pub(super) fn new(kind: LoopKind, times: u32, repeated: &str, result: &str) -> Self {
        Self {
            kind,
            times,
            repeated: shorten(repeated),
            result: shorten(result),
        }
    }

    /// Returns the diagnosis: [`FailureKind::Stuck`], certain, with the sentence as its evidence. The same repetition has the
    /// same fingerprint, regardless of the count.
    pub fn diagnosis(&self) -> Diagnosis {
        let known = DiagnosisKnowledge::built_in().kind(FailureKind::Stuck);
        let rule = format!("{}.{}", FailureKind::Stuck, self.kind);
        let thing = format!("{} {}", self.repeated, self.result);
        let line = self.to_string();
        Diagnosis {
            kind: FailureKind::Stuck,
            layer: FailureLayer::Agent,
            level: known.level(FailureKind::Stuck, FailureLayer::Agent),
            confidence: 1.0,
            retry_after: None,
            retry_after_source: None,
            fingerprint: fingerprint(FailureKind::Stuck, &rule, &thing, 0),
            message: format!("{}: {line}", known.title),
            hint: LoopPatterns::built_in().message_for(self.kind).hint.clone(),
            truncated: false,
            evidence: Evidence { rule, line },
        }
    }
}

impl fmt::Display for LoopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let says = &LoopPatterns::built_in().message_for(self.kind).sentence;
        let sentence = says
            .replace("{times}", &self.times.to_string())
            .replace("{repeated}", &self.repeated);
        f.write_str(&sentence)?;
        match &*self.result {
            "" => Ok(()),
            result => write!(f, ": {result}"),
        }
    }
}

/// Returns a text on one line, truncated if long.
pub(super) fn shorten(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_SHOWN_LEN) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text,
    }
}
