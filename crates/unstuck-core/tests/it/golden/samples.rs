//! Typed samples of every kind of event, with every optional field set in at least one of them.

mod calls;
mod decisions;
mod questions;
mod repairs;
mod runs;

use std::time::Duration;

use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::event::{Event, RunId, SessionId};
use unstuck_core::{Diagnosis, Evidence, FailureKind, FailureLayer, RecoveryLevel, Timestamp};

/// The run of all samples.
pub(super) const RUN: &str = "k3v9x0m2qa";

/// Returns all samples, each kind at least once.
pub(super) fn all() -> Vec<Event> {
    [
        runs::all(),
        decisions::all(),
        calls::all(),
        repairs::all(),
        questions::all(),
        runs::ends(),
    ]
    .concat()
}

/// Returns the time this many seconds after the first event.
pub(super) fn later(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(1_794_777_000).after(Duration::from_secs(seconds))
}

fn session() -> SessionId {
    RunId::new(RUN).session_id(1)
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn diagnosis(kind: FailureKind, layer: FailureLayer, level: Option<RecoveryLevel>) -> Diagnosis {
    Diagnosis {
        kind,
        layer,
        level,
        confidence: 0.9,
        retry_after: Some(Duration::from_millis(12_500)),
        retry_after_source: Some(RetryAfterSource::Header),
        evidence: Evidence {
            rule: "anthropic.rate_limit".into(),
            line: "API Error: 429 rate_limit_error".into(),
        },
        fingerprint: "rate_limit:0123456789abcdef".into(),
        message: "Too many requests".into(),
        hint: "Wait, or use fewer agents at once.".into(),
        truncated: true,
    }
}
