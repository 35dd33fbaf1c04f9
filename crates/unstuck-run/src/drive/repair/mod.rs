//! Repairs of the environment: which one fits a failure, whether it may run, and running it.
//!
//! Agents and unstuck itself propose; the guard ([`unstuck_core::guard`]) judges; only what the owner wrote into their
//! list, or a person allowed word for word, is run. Nothing is tried twice in a run.

mod best;
mod candidate;
pub(in crate::drive) mod carried_out;
pub(in crate::drive) mod documents;
mod execution;
mod kept_tree;
mod memory;
mod repairer;
mod survey;
mod terms;
mod weighing;
mod workshop;

pub use kept_tree::label_before;
pub use repairer::Repairer;
pub use terms::{RepairMode, RepairTerms};
pub use workshop::{KnowsRepairs, Workshop};

pub(super) use best::{Best, Case, Source};
pub(super) use kept_tree::Moment;
pub(super) use memory::remembered;
