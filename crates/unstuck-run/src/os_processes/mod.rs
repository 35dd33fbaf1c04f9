//! The processes of this machine: identity, ancestry, signals and exit status.
//!
//! Used by the supervisor and by the reaper.

#[cfg(not(target_os = "linux"))]
pub(crate) mod close_on_exec;
mod exit_status;
mod identity;
mod ignored_signals;
pub(crate) mod process_table;
pub(crate) mod send_signal;

pub use exit_status::ChildExitStatus;
pub use identity::ProcessId;
pub use ignored_signals::IgnoredSignals;
