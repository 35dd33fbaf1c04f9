//! What can go wrong with supervising itself; a child that fails is not an error.

use std::io;
use std::path::PathBuf;

/// Why a child could not be supervised.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The reaper could not be started.
    #[error("the reaper {} could not be started", program.display())]
    ReaperStartFailed {
        /// The program that should be the reaper.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The reaper ended while it was needed; what it watched over was killed.
    #[error("the reaper process ended unexpectedly, its processes were killed")]
    ReaperDied,
    /// The standard input was larger than what is kept for a second attempt.
    #[error("the standard input is too large to be given to a second attempt")]
    StdinNotReplayable,
    /// The system refused a pipe, a terminal or the like.
    #[error("cannot {operation}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Says what was tried when the system refuses it.
pub(crate) trait ProcessIoContext<T> {
    /// Makes an error of ours of it.
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
