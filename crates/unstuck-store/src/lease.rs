//! Run leases, kept alive by heartbeats, so that two processes never drive the same run.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use unstuck_core::Timestamp;
use unstuck_core::event::RunId;

/// The lifetime of a lease after its last heartbeat.
pub const LEASE_TTL: Duration = Duration::from_secs(15);

/// The process that supervises a run, with enough detail to check whether it is still alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseOwner {
    /// The host name.
    pub host: String,
    /// The boot id of the host.
    pub boot: String,
    /// The process id.
    pub pid: u32,
    /// The start time of the process, as the system counts it; process ids are reused.
    pub started: u64,
}

/// The right to drive a run; each new owner gets a higher number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseToken {
    /// The run.
    pub run: RunId,
    /// The lease number within the run.
    pub number: u64,
}

/// A held lease: the exclusive right of a process to drive a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The lease token.
    pub token: LeaseToken,
    /// The owner.
    pub owner: LeaseOwner,
    /// The last heartbeat.
    pub heartbeat: Timestamp,
}

impl Lease {
    /// Returns the expiry time unless the lease is renewed.
    pub fn expires_at(&self) -> Timestamp {
        self.heartbeat.after(LEASE_TTL)
    }

    /// Returns whether the lease has expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at() <= now
    }
}

/// A claim of a process to the lease of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseClaim {
    /// The run.
    pub run: RunId,
    /// The process that wants to drive it.
    pub owner: LeaseOwner,
    /// The current time.
    pub now: Timestamp,
    /// The lease of a dead owner, to be replaced before it expires.
    pub replaces: Option<LeaseToken>,
}

/// The result of a lease claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseClaimOutcome {
    /// The caller now supervises the run.
    Granted(LeaseToken),
    /// Another process supervises the run. If it is dead, claim again and [replace](LeaseClaim::replaces) its lease.
    HeldBy(Lease),
}

/// A lease operation for the writer.
#[derive(Debug)]
pub(crate) enum LeaseChange {
    Claim(LeaseClaim),
    Renew(LeaseToken, Timestamp),
    Release(LeaseToken),
}
