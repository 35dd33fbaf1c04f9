//! Runs a repair that was approved, confined, and leaves nothing of it behind.
//!
//! What runs is the text of an [`ApprovedCommand`](unstuck_core::command_policy::ApprovedCommand), nothing else: the words of a proposal never
//! get here. It runs in the folder that was opened when it was decided on, with an environment that was rebuilt, in the
//! sandbox of [`unstuck_repair`], and one at a time in a project.

mod error;
mod executor;
mod job;
mod outcome;
mod preview_job;
mod sandbox_connection;

pub use error::RepairError;
pub use executor::RepairExecutor;
pub use job::RepairJob;
pub use outcome::RepairOutcome;
pub use preview_job::{PreviewJob, PreviewJobError};
