//! Stage 2: which kind of failure it is, how sure that is, and when it may pass.
//!
//! Rules are data (`data/kinds/<kind>.toml`). A failure's texts are first made
//! as a person would see them on a screen; one automaton looks for the literals of all patterns at once; the
//! rules whose literals were seen are tried; what holds is weighed: structure beats text, text beats a
//! mere number, and the last error in a log beats early noise unless the earlier one explains more.

mod classifier;
mod compiled_rule;
mod evidence;
mod evidence_input;
mod fingerprint;
mod lenient_json;
mod normalize;
mod pattern;
mod pattern_index;
mod retry_after;
mod retry_after_source;
mod scoring;
mod time_parsing;

use std::time::Duration;

pub use classifier::Classifier;
pub use fingerprint::mask_text;
pub(crate) use fingerprint::{fingerprint, mask_line};
pub(crate) use normalize::NormalizedText;
pub use pattern::PatternError;
pub use retry_after_source::RetryAfterSource;
pub(crate) use time_parsing::parse_duration as read_duration;

use serde::{Deserialize, Serialize};

use crate::failure::{Category, Failure, Kind, Layer, Level};
use crate::knowledge::Knowledge;
use crate::time::ClockReading;

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
    pub retry_after_source: Option<RetryAfterSource>,
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
    pub fn from_observation(kind: Kind, layer: Layer, what: &str, sentence: &str) -> Self {
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
    pub fn masked_evidence(&self) -> String {
        const LONGEST: usize = 200;
        match mask_text(&self.evidence.line, LONGEST) {
            line if line.is_empty() => mask_text(&self.message, LONGEST),
            line => line,
        }
    }

    /// Whether the very same call may succeed later.
    pub fn is_retryable(&self) -> bool {
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
/// use unstuck_core::{Failure, Kind, ClockReading, Timestamp, classify};
///
/// let now = ClockReading::utc(Timestamp::from_seconds(0));
/// let failure = Failure::tool("bash").with_exit_code(127).with_stderr("bash: line 1: rg: command not found");
/// assert_eq!(classify(&failure, &now).kind, Kind::CommandNotFound);
/// ```
pub fn classify(failure: &Failure, now: &ClockReading) -> Diagnosis {
    Classifier::built_in().diagnose(failure, now)
}
