//! What stands between a proposed repair and the machine.
//!
//! Agents diagnose, unstuck executes, and only what a person allowed. Whether a command may run is judged by
//! [`unstuck_core::guard`], which is pure; this crate brings what that needs from the machine, and confines what runs.

pub mod environment;
mod evaluate;
pub mod preview;
pub mod probe;
pub mod project_dir;
pub mod project_lock;
pub mod proposal_file;
pub mod sandbox;
pub mod trust;
pub mod watched_files;

use unstuck_files::safe_open as beneath;

pub use evaluate::{EvaluatedProposal, ProposalEvaluation, evaluate_proposal};
pub use probe::probe_project;
