//! Stage 2: the kind of a failure, the confidence, and when it may pass.
//!
//! Rules are data (`data/kinds/<kind>.toml`). A failure's texts are first normalized to what appears on a screen; one
//! pattern index searches for the literals of all patterns at once; rules whose literals were found are tried; matches
//! are scored: structure beats text, text beats a mere number, and the last error in a log beats early noise unless the
//! earlier one explains more.

mod classifier;
mod compiled_rule;
mod evidence_line;
mod fingerprint;
mod lenient_json;
mod normalized_text;
mod pattern;
mod pattern_index;
mod prepared_failure;
mod retry_after;
mod retry_after_source;
mod scoring;
mod time_parsing;

use std::time::Duration;

pub use classifier::Classifier;
pub use fingerprint::mask_text;
pub(crate) use fingerprint::{fingerprint, mask_line};
pub(crate) use normalized_text::NormalizedText;
pub use pattern::PatternError;
pub use retry_after_source::RetryAfterSource;
pub(crate) use time_parsing::parse_duration as read_duration;

use serde::{Deserialize, Serialize};

use crate::failure::{Category, Failure, FailureKind, FailureLayer, RecoveryLevel};
use crate::knowledge::DiagnosisKnowledge;
use crate::time::ClockReading;

/// The diagnosis of a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The layer where it was observed.
    pub layer: FailureLayer,
    /// The level at which recovery starts; none for `code` and `none`.
    pub level: Option<RecoveryLevel>,
    /// The confidence, from 0 to 1.
    pub confidence: f32,
    /// The time to wait, if stated by the failure; in milliseconds on the wire.
    #[serde(
        with = "crate::duration::optional_millis",
        rename = "retry_after_ms",
        default
    )]
    pub retry_after: Option<Duration>,
    /// The source of that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_source: Option<RetryAfterSource>,
    /// The evidence.
    pub evidence: Evidence,
    /// The fingerprint, which identifies repetitions of the same failure.
    pub fingerprint: String,
    /// A one-sentence summary.
    pub message: String,
    /// The recommended action.
    pub hint: String,
    /// True if a response was truncated at its length limit.
    pub truncated: bool,
}

impl Diagnosis {
    /// Returns the category, which determines the initial treatment.
    pub fn category(&self) -> Category {
        self.kind.category()
    }

    /// Creates a certain diagnosis from an observation without text, with a sentence that describes it.
    pub fn from_observation(
        kind: FailureKind,
        layer: FailureLayer,
        what: &str,
        sentence: &str,
    ) -> Self {
        let known = DiagnosisKnowledge::built_in().kind(kind);
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

    /// Returns the evidence with variable parts masked, short enough for a list.
    pub fn masked_evidence(&self) -> String {
        const LONGEST: usize = 200;
        match mask_text(&self.evidence.line, LONGEST) {
            line if line.is_empty() => mask_text(&self.message, LONGEST),
            line => line,
        }
    }

    /// Returns true if the very same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.level == Some(RecoveryLevel::Same)
    }
}

/// The evidence of a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The rule that matched.
    pub rule: String,
    /// The matching line, normalized.
    pub line: String,
}

/// Classifies a failure by the embedded rules.
///
/// ```
/// use unstuck_core::{Failure, FailureKind, ClockReading, Timestamp, classify};
///
/// let now = ClockReading::utc(Timestamp::from_seconds(0));
/// let failure = Failure::tool("bash").with_exit_code(127).with_stderr("bash: line 1: rg: command not found");
/// assert_eq!(classify(&failure, &now).kind, FailureKind::CommandNotFound);
/// ```
pub fn classify(failure: &Failure, now: &ClockReading) -> Diagnosis {
    Classifier::built_in().diagnose(failure, now)
}
