//! The heart of unstuck.
pub mod diagnosis;
pub mod failure;
pub mod knowledge;
mod moment;
mod nearest;
pub use diagnosis::{Classifier, Diagnosis, Evidence};
pub use failure::{Case, Category, Failure, Headers, Kind, Layer, Level, Text, UnknownKind};
pub use moment::{NotATimestamp, Now, Timestamp};
