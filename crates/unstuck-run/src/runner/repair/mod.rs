//! Repairs of the environment: selection, authorization and execution.
//!
//! Agents and unstuck itself propose; the command policy ([`unstuck_core::command_policy`]) decides; only commands on
//! the owner's list, or approved by a person word for word, are run. No repair is tried twice in a run.

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
