//! Repairs of the environment: selection, authorization and execution.
//!
//! Agents and unstuck itself propose; the command policy ([`unstuck_core::command_policy`]) decides; only commands on
//! the owner's list, or approved by a human word for word, are run. No repair is tried twice in a run.

pub(in crate::runner) mod agent_proposal;
mod approved_repairs;
mod candidate_policy_check;
mod context;
mod coordinator;
pub(in crate::runner) mod events;
mod execute;
mod sandbox_probe_cache;
mod select;
mod settings;
mod snapshot;
mod unevaluated_candidate;

pub use context::{RepairCatalogProvider, SharedRepairContext};
pub use coordinator::RepairCoordinator;
pub use settings::{RepairMode, RepairSettings};
pub use snapshot::before_repair_label;

pub(super) use approved_repairs::load_history;
pub(super) use select::{RepairQuery, RepairQueryScope, SelectedRepair};
pub(super) use snapshot::SnapshotPhase;
