//! Errors of running a repair. A command that fails is not an error.

use std::io;

use crate::process::ProcessError;

/// An error of running a repair.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// Another repair of this project is running.
    #[error("another repair of this project is running")]
    Busy,
    /// The sandbox could not be set up; no part of the command ran.
    #[error("sandbox setup failed: cannot {operation}: {reason}")]
    SandboxSetup {
        /// The failed operation.
        operation: String,
        /// Cause of the error.
        reason: String,
    },
    /// The command was refused.
    #[error("{reason}")]
    Refused {
        /// The reason.
        reason: String,
    },
    /// A system call failed.
    #[error("cannot {doing}")]
    System {
        /// The failed operation.
        doing: &'static str,
        /// Cause of the error.
        source: io::Error,
    },
    /// The process could not be supervised.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// Adds the operation to an I/O error.
pub(super) trait RepairIoContext<T> {
    /// Converts an I/O error of an operation.
    fn context(self, doing: &'static str) -> Result<T, RepairError>;
}

impl<T> RepairIoContext<T> for io::Result<T> {
    fn context(self, doing: &'static str) -> Result<T, RepairError> {
        self.map_err(|source| RepairError::System { doing, source })
    }
}
