//! Checks and confines proposed repairs on this machine.
//!
//! Agents diagnose, and unstuck executes only what the owner approved. The approval rules are in
//! [`unstuck_core::command_policy`], which is pure; this crate provides the facts about the machine, and confines what
//! runs.

pub mod environment;
pub mod preview;
pub mod project_dir;
pub mod project_lock;
pub mod project_probe;
mod proposal_evaluation;
pub mod proposal_file;
pub mod sandbox;
pub mod trust;
pub mod watched_files;

use unstuck_files::safe_open as beneath;

pub use project_probe::probe_project;
pub use proposal_evaluation::{EvaluatedProposal, ProposalEvaluation, evaluate_proposal};
