//! Errors of sandbox setup, as opposed to failures of the command.

use std::io;

use super::wire::SandboxLifecycleEvent;

/// A failed setup operation with the system's error.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation}: {source}")]
pub(super) struct SetupFailure {
    pub(super) operation: String,
    pub(super) source: io::Error,
    /// If set, a retry without namespaces may work.
    pub(super) without_namespaces: bool,
}

impl SetupFailure {
    /// Returns a failure that no other setup would change.
    pub(super) fn permanent(doing: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            operation: doing.into(),
            source: io::Error::other(why.into()),
            without_namespaces: false,
        }
    }

    /// Returns the failure as a report to the parent.
    pub(super) fn to_report(&self) -> SandboxLifecycleEvent {
        SandboxLifecycleEvent::SetupFailed {
            operation: self.operation.clone(),
            error: self.source.to_string(),
            without_namespaces: self.without_namespaces,
        }
    }
}

/// Adds the attempted operation to system errors.
pub(super) trait SandboxIoContext<T> {
    /// Adds context to an operation that is always required.
    fn context(self, doing: impl Into<String>) -> Result<T, SetupFailure>;

    /// Adds context to an operation that only namespaces need.
    #[cfg(target_os = "linux")]
    fn isolation_context(self, doing: impl Into<String>) -> Result<T, SetupFailure>;
}

impl<T, E: Into<io::Error>> SandboxIoContext<T> for Result<T, E> {
    fn context(self, doing: impl Into<String>) -> Result<T, SetupFailure> {
        self.map_err(|error| SetupFailure {
            operation: doing.into(),
            source: error.into(),
            without_namespaces: false,
        })
    }

    #[cfg(target_os = "linux")]
    fn isolation_context(self, doing: impl Into<String>) -> Result<T, SetupFailure> {
        self.map_err(|error| SetupFailure {
            operation: doing.into(),
            source: error.into(),
            without_namespaces: true,
        })
    }
}
