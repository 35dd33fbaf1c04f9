//! Runs an approved repair in a sandbox, and leaves no process behind.
//!
//! Only the text of an [`ApprovedCommand`](unstuck_core::command_policy::ApprovedCommand) runs: the text of a proposal
//! never gets here. It runs in the directory that was opened for the approval, with a rebuilt environment, in the
//! sandbox of [`unstuck_repair`], and one at a time per project.

mod error;
mod executor;
mod job;
mod outcome;
mod run_preview;
mod sandbox_connection;

pub use error::RepairError;
pub use executor::RepairExecutor;
pub use job::RepairJob;
pub use outcome::RepairExecutionResult;
pub use run_preview::{PreviewJob, PreviewJobError};
