//! Why a sandbox could not be set up. Never why a command failed.

use std::io;

use super::wire::Report;

/// What was tried, and what the system said.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing}: {source}")]
pub(super) struct Failure {
    pub(super) doing: String,
    pub(super) source: io::Error,
    /// Whether it may work without namespaces.
    pub(super) without_namespaces: bool,
}

impl Failure {
    /// Something that no other set-up would change.
    pub(super) fn final_one(doing: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            doing: doing.into(),
            source: io::Error::other(why.into()),
            without_namespaces: false,
        }
    }

    /// As it is told.
    pub(super) fn report(&self) -> Report {
        Report::SetUp {
            doing: self.doing.clone(),
            error: self.source.to_string(),
            without_namespaces: self.without_namespaces,
        }
    }
}

/// Says what was tried when the system refuses it.
pub(super) trait While<T> {
    /// Something that is needed in any case.
    fn to(self, doing: impl Into<String>) -> Result<T, Failure>;

    /// Something that only namespaces need.
    #[cfg(target_os = "linux")]
    fn to_isolate(self, doing: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> While<T> for Result<T, E> {
    fn to(self, doing: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            doing: doing.into(),
            source: error.into(),
            without_namespaces: false,
        })
    }

    #[cfg(target_os = "linux")]
    fn to_isolate(self, doing: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            doing: doing.into(),
            source: error.into(),
            without_namespaces: true,
        })
    }
}
