//! Who drives a run: a lease that is kept alive by heartbeats, so that two processes never drive the same run.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use unstuck_core::Timestamp;
use unstuck_core::event::RunId;

/// How long a lease lasts after its last heartbeat.
pub const LEASE_TTL: Duration = Duration::from_secs(15);

/// The process that drives a run, told so that another can find out whether it still lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseOwner {
    /// The name of the machine.
    pub host: String,
    /// The machine's id of its present boot.
    pub boot: String,
    /// The process.
    pub pid: u32,
    /// When the process started, in the system's own count; process ids are used again.
    pub started: u64,
}

/// The right to drive a run; each new owner of a run has a higher number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseToken {
    /// The run.
    pub run: RunId,
    /// Which of its leases this is.
    pub number: u64,
}

/// A lease that someone holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// What it is known by.
    pub token: LeaseToken,
    /// Who holds it.
    pub owner: LeaseOwner,
    /// When they last said so.
    pub heartbeat: Timestamp,
}

impl Lease {
    /// When it ends, unless it is renewed.
    pub fn expires_at(&self) -> Timestamp {
        self.heartbeat.after(LEASE_TTL)
    }

    /// Whether it has ended.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at() <= now
    }
}

/// The wish to drive a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The run.
    pub run: RunId,
    /// Who wants to drive it.
    pub owner: LeaseOwner,
    /// The present moment.
    pub now: Timestamp,
    /// A lease whose owner was found to be dead, and which need not expire first.
    pub replaces: Option<LeaseToken>,
}

/// What came of the wish to drive a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// The run is the caller's to drive.
    Granted(LeaseToken),
    /// Someone else drives it. If they are dead, claim again [instead of](ClaimRequest::replaces) their lease.
    HeldBy(Lease),
}

/// A change of a lease, as the writer gets it.
#[derive(Debug)]
pub(crate) enum LeaseChange {
    Claim(ClaimRequest),
    Renew(LeaseToken, Timestamp),
    Release(LeaseToken),
}
