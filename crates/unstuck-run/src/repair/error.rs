//! Why a repair did not run. A command that fails is not an error.

use std::io;

use crate::process::ProcessError;

/// Why a repair did not run.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// Another repair of this project runs.
    #[error("another repair of this project is running")]
    Busy,
    /// The sandbox could not be set up; nothing of the command ran.
    #[error("the sandbox could not be set up: cannot {operation}: {reason}")]
    SandboxSetup {
        /// What was tried.
        operation: String,
        /// Why it did not work.
        reason: String,
    },
    /// The command must not run as it stands.
    #[error("{reason}")]
    Refused {
        /// The reason.
        reason: String,
    },
    /// The system refused a file, a folder or a connection of ours.
    #[error("cannot {doing}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The process could not be supervised.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// Says what was tried when the system refuses it.
pub(super) trait RepairIoContext<T> {
    /// Makes an error of ours of it.
    fn context(self, doing: &'static str) -> Result<T, RepairError>;
}

impl<T> RepairIoContext<T> for io::Result<T> {
    fn context(self, doing: &'static str) -> Result<T, RepairError> {
        self.map_err(|source| RepairError::System { doing, source })
    }
}
