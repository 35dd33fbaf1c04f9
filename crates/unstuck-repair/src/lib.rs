//! What stands between a proposed repair and the machine.
//!
//! Agents diagnose, unstuck executes, and only what a person allowed. Whether a command may run is judged by
//! [`unstuck_core::guard`], which is pure; this crate brings what that needs from the machine, and confines what runs.

pub mod environment;
pub mod guard_files;
pub mod lock;
pub mod place;
pub mod preview;
pub mod proposal_file;
pub mod sandbox;
pub mod survey;
pub mod trust;
mod weigh;

use unstuck_files::safe_open as beneath;

pub use survey::survey;
pub use weigh::{Judged, Weighed, weigh};
