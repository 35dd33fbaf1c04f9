//! The processes of this machine: which is meant, who started whom, how to signal them and how one ended.
//!
//! Whoever supervises children and the reaper that starts them both stand on this.

#[cfg(not(target_os = "linux"))]
pub(crate) mod descriptor;
mod exit_status;
mod identity;
mod ignored_signals;
pub(crate) mod process_table;
pub(crate) mod send_signal;

pub use exit_status::ChildStatus;
pub use identity::ProcessId;
pub use ignored_signals::IgnoredSignals;
