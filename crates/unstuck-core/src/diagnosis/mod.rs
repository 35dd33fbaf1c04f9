//! Stage 2: which kind of failure it is, how sure that is, and when it may pass.
//!
//! Rules are data (`data/kinds/<kind>.toml`). A failure's texts are first made
//! as a person would see them on a screen; one automaton looks for the literals of all patterns at once; the
//! rules whose literals were seen are tried; what holds is weighed: structure beats text, text beats a
//! mere number, and the last error in a log beats early noise unless the earlier one explains more.

mod automaton;
mod classifier;
mod clock;
mod evidence;
mod fingerprint;
mod loose;
mod pattern;
mod rule;
mod screen;
mod view;
mod wait;
mod wait_source;
mod weigh;

use std::time::Duration;

pub use classifier::Classifier;
pub(crate) use clock::duration as read_duration;
pub use fingerprint::masked_text;
pub(crate) use fingerprint::{fingerprint, template};
pub use pattern::PatternError;
pub(crate) use screen::Screen;
pub use wait_source::WaitSource;

use serde::{Deserialize, Serialize};

use crate::failure::{Category, Failure, Kind, Layer, Level};
use crate::knowledge::Knowledge;
use crate::moment::Now;

/// What a failure was found to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// What went wrong, in one word.
    pub kind: Kind,
    /// Where it was observed.
    pub layer: Layer,
    /// The level at which recovery starts; none for `code` and `none`.
    pub level: Option<Level>,
    /// How sure this is, from 0 to 1.
    pub confidence: f32,
    /// How long to wait, where the failure states it; milliseconds on the wire.
    #[serde(
        with = "crate::duration::optional_millis",
        rename = "retry_after_ms",
        default
    )]
    pub retry_after: Option<Duration>,
    /// Where that wait is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_source: Option<WaitSource>,
    /// What it was recognised by.
    pub evidence: Evidence,
    /// Recognises the same failure again.
    pub fingerprint: String,
    /// One sentence for a person.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// Whether an answer was cut off at its length limit.
    pub truncated: bool,
}

impl Diagnosis {
    /// How this kind is treated at first.
    pub fn category(&self) -> Category {
        self.kind.category()
    }

    /// What was seen to fail and needs no words to be known: certain, with a sentence that says what was seen.
    pub fn observed(kind: Kind, layer: Layer, what: &str, sentence: &str) -> Self {
        let known = Knowledge::built_in().kind(kind);
        let rule = format!("{kind}.{what}");
        Self {
            kind,
            layer,
            level: known.level(kind, layer),
            confidence: 1.0,
            retry_after: None,
            retry_after_source: None,
            fingerprint: fingerprint::fingerprint(kind, &rule, sentence, 0),
            message: format!("{}: {sentence}", known.title),
            hint: known.hint.clone(),
            truncated: false,
            evidence: Evidence {
                rule,
                line: sentence.to_owned(),
            },
        }
    }

    /// What was said, with what varies masked; short enough for a list.
    pub fn said(&self) -> String {
        const LONGEST: usize = 200;
        match masked_text(&self.evidence.line, LONGEST) {
            line if line.is_empty() => masked_text(&self.message, LONGEST),
            line => line,
        }
    }

    /// Whether the very same call may succeed later.
    pub fn retryable(&self) -> bool {
        self.level == Some(Level::Same)
    }
}

/// What a diagnosis rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The rule that decided.
    pub rule: String,
    /// The line that it matched, as a person would see it.
    pub line: String,
}

/// Tells what kind of failure it is, by the embedded rules.
///
/// ```
/// use unstuck_core::{Failure, Kind, Now, Timestamp, classify};
///
/// let now = Now::utc(Timestamp::from_seconds(0));
/// let failure = Failure::tool("bash").with_exit_code(127).with_stderr("bash: line 1: rg: command not found");
/// assert_eq!(classify(&failure, &now).kind, Kind::CommandNotFound);
/// ```
pub fn classify(failure: &Failure, now: &Now) -> Diagnosis {
    Classifier::built_in().diagnose(failure, now)
}
