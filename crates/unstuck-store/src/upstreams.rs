//! What all processes that use an upstream share while it is down.

use std::time::Duration;

use unstuck_core::Timestamp;

/// Whether somebody may find out if an upstream is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeGrant {
    /// Whether it is the caller who may ask, once.
    pub is_granted: bool,
    /// Before this nobody else may.
    pub next: Timestamp,
    /// When the upstream was last seen to be back.
    pub recovered: Option<Timestamp>,
}

/// A change of what is shared about an upstream, as the writer gets it.
#[derive(Debug)]
pub(crate) enum UpstreamChange {
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
