//! Why a sandbox could not be set up. Never why a command failed.

use std::io;

use super::wire::SandboxEvent;

/// What was tried, and what the system said.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation}: {source}")]
pub(super) struct SetupFailure {
    pub(super) operation: String,
    pub(super) source: io::Error,
    /// Whether it may work without namespaces.
    pub(super) without_namespaces: bool,
}

impl SetupFailure {
    /// Something that no other set-up would change.
    pub(super) fn permanent(doing: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            operation: doing.into(),
            source: io::Error::other(why.into()),
            without_namespaces: false,
        }
    }

    /// As it is told.
    pub(super) fn to_report(&self) -> SandboxEvent {
        SandboxEvent::SetupFailed {
            operation: self.operation.clone(),
            error: self.source.to_string(),
            without_namespaces: self.without_namespaces,
        }
    }
}

/// Says what was tried when the system refuses it.
pub(super) trait SandboxIoContext<T> {
    /// Something that is needed in any case.
    fn context(self, doing: impl Into<String>) -> Result<T, SetupFailure>;

    /// Something that only namespaces need.
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
