//! The wait of an API call that the gateway holds, for displays.

use super::decide::WaitPurpose;
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// The wait of an API call that the gateway holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallWait {
    /// The time at which the next attempt is due.
    pub until: Timestamp,
    /// The failure that it waits out.
    pub kind: FailureKind,
    /// The purpose of the wait.
    pub wait_purpose: WaitPurpose,
    /// The time at which retries end if there is no progress, if retries are bounded by time.
    pub give_up_at: Option<Timestamp>,
}
