//! The heart of unstuck.
pub mod action;
pub mod decision;
pub mod diagnosis;
pub mod duration;
pub mod episode;
pub mod failure;
pub mod knowledge;
mod moment;
mod nearest;
pub use action::{PlanRequest, PlannedStrategy, Settings, plan};
pub use decision::{Decision, RetryPolicy, decide};
pub use diagnosis::{Classifier, Diagnosis, Evidence};
pub use episode::{Episode, FailureAnalytics};
pub use failure::{Case, Category, Failure, Headers, Kind, Layer, Level, Text, UnknownKind};
pub use moment::{NotATimestamp, Now, Timestamp};
