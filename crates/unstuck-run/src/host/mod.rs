//! The processes of this machine: which is meant, who started whom, how to signal them and how one ended.
//!
//! Whoever supervises children and the reaper that starts them both stand on this.

#[cfg(not(target_os = "linux"))]
pub(crate) mod descriptor;
mod identity;
pub(crate) mod kill;
mod signals;
mod status;
pub(crate) mod table;

pub use identity::ProcessId;
pub use signals::IgnoredSignals;
pub use status::Status;
