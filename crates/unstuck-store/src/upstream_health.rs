//! Upstream health that all processes share while an upstream is down.

use std::time::Duration;

use unstuck_core::Timestamp;

/// The answer to a claim to probe an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeClaimOutcome {
    /// True if the caller may send one probe.
    pub is_granted: bool,
    /// The time before which no other process may probe.
    pub next: Timestamp,
    /// The last time the upstream was seen recovered.
    pub recovered: Option<Timestamp>,
}

/// The release of a call that waited for an upstream, for the writer.
#[derive(Debug)]
pub(crate) struct CallRelease {
    pub(crate) url: String,
    pub(crate) now: Timestamp,
}

/// A change of the stored upstream health, for the writer.
#[derive(Debug)]
pub(crate) enum UpstreamHealthChange {
    ClaimProbe {
        url: String,
        now: Timestamp,
        every: Duration,
    },
    Recovered {
        url: String,
        at: Timestamp,
    },
}
