//! Repairs of the environment: which one fits a failure, whether it may run, and running it.
//!
//! Agents and unstuck itself propose; the guard ([`unstuck_core::guard`]) judges; only what the owner wrote into their
//! list, or a person allowed word for word, is run. Nothing is tried twice in a run.

mod candidate;
mod context;
mod coordinator;
mod evaluate;
pub(in crate::runner) mod events;
mod execute;
mod history;
pub(in crate::runner) mod proposal;
mod sandbox_probe_cache;
mod select;
mod settings;
mod snapshot;

pub use context::{RepairCatalogSource, RepairContext};
pub use coordinator::RepairCoordinator;
pub use settings::{RepairMode, RepairSettings};
pub use snapshot::before_repair_label;

pub(super) use history::load_history;
pub(super) use select::{RepairOrigin, RepairQuery, SelectedRepair};
pub(super) use snapshot::SnapshotPhase;
