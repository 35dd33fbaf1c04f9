//! Integration tests of the core through its public API.
#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
#![cfg(test)]

mod agent_calls;
mod agents;
mod bytes;
mod calls;
mod corpus;
mod damage;
mod fingerprints;
mod golden;
mod guard;
mod redaction;
mod repairs;
mod requirements;
mod samples;
mod session_status;
mod stuck;
mod texts;
mod waits;

use unstuck_core::{Classifier, ClockReading, Diagnosis, Failure, FailureKind};

/// Sunday evening in Europe, half past eight in UTC.
const NOW: &str = "2026-11-15T20:30:00Z";

fn now() -> ClockReading {
    ClockReading::utc(NOW.parse().unwrap())
}

fn diagnose(failure: &Failure) -> Diagnosis {
    Classifier::built_in().diagnose(failure, &now())
}

fn kind(failure: &Failure) -> FailureKind {
    diagnose(failure).kind
}
