//! The heart of unstuck.
pub mod action;
pub mod diagnosis;
pub mod failure;
pub mod knowledge;
mod moment;
mod nearest;
pub use action::{PlanRequest, PlannedStrategy, Settings, plan};
pub use diagnosis::{Diagnosis, Evidence};
pub use failure::{Category, Failure, Headers, Kind, Layer, Level, Text, UnknownKind};
pub use moment::{NotATimestamp, Now, Timestamp};
