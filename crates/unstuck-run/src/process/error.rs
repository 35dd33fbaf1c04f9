//! Errors of the supervision itself; a child that fails is not an error.

use std::io;
use std::path::PathBuf;

/// An error of supervising a child.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The reaper could not be started.
    #[error("cannot start the reaper {}", program.display())]
    ReaperStartFailed {
        /// The program of the reaper.
        program: PathBuf,
        /// Cause of the error.
        source: io::Error,
    },
    /// The reaper died while it was needed; its children were killed.
    #[error("the reaper exited unexpectedly; its child processes were killed")]
    ReaperDied,
    /// The standard input was too large to be stored for another attempt.
    #[error("stdin is too large to replay in another attempt")]
    StdinNotReplayable,
    /// A system call failed.
    #[error("cannot {operation}")]
    System {
        /// The failed operation.
        operation: &'static str,
        /// Cause of the error.
        source: io::Error,
    },
}

/// Adds the operation to an I/O error.
pub(crate) trait ProcessIoContext<T> {
    /// Converts an I/O error of an operation.
    fn context(self, doing: &'static str) -> Result<T, ProcessError>;
}

impl<T, E: Into<io::Error>> ProcessIoContext<T> for Result<T, E> {
    fn context(self, doing: &'static str) -> Result<T, ProcessError> {
        self.map_err(|error| ProcessError::System {
            operation: doing,
            source: error.into(),
        })
    }
}
