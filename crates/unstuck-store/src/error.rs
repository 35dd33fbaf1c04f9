//! Store errors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use unstuck_core::event::RunId;

use crate::escalation::EscalationClosure;
use crate::settings::StoredSetting;

/// A failed store operation; it has changed nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The location names an unsupported kind of store.
    #[error("`{location}` is a kind of store that this build cannot use")]
    Unsupported {
        /// The location as given.
        location: String,
    },
    /// The store was written by a newer unstuck.
    #[error(
        "the store {path} was written by a newer unstuck (schema {found}, this one knows {known})"
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The schema version of the file.
        found: u32,
        /// The newest supported schema version.
        known: u32,
    },
    /// The file is damaged.
    #[error("the store {path} is damaged: {detail}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The details of the damage.
        detail: String,
    },
    /// The file is not a store; it is left unchanged.
    #[error("{path} is not a store of unstuck, and was left as it is")]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory is read-only.
    #[error("the store {path} cannot be written: it, its folder or its disk is read-only")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory cannot be opened or created.
    #[error("cannot {action} {path}: {source}")]
    Inaccessible {
        /// The failed operation.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system error.
        source: Arc<std::io::Error>,
    },
    /// The disk is full.
    #[error("the disk of the store {path} is full")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Other processes kept the store locked until the timeout.
    #[error("the store {path} was kept busy by another process for too long")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Another process now drives the run.
    #[error("run {run} has been taken over by another process")]
    LostLease {
        /// The run.
        run: RunId,
    },
    /// The run does not exist.
    #[error("there is no run {run} in the store")]
    UnknownRun {
        /// The run.
        run: RunId,
    },
    /// A run with this id exists already.
    #[error("there is already a run {run} in the store")]
    RunExists {
        /// The run.
        run: RunId,
    },
    /// The escalation does not exist.
    #[error("there is no question {id}")]
    UnknownEscalation {
        /// The escalation id.
        id: String,
    },
    /// The escalation was already answered.
    #[error("question {id} was answered already")]
    AlreadyAnswered {
        /// The escalation id.
        id: String,
        /// The first answer.
        closure: Box<EscalationClosure>,
    },
    /// The escalation has changed since it was shown.
    #[error("question {id} has changed since it was shown")]
    EscalationChanged {
        /// The escalation id.
        id: String,
    },
    /// The setting was changed by someone else.
    #[error("the setting {key} has been changed by someone else since it was read")]
    SettingChanged {
        /// The setting key.
        key: String,
        /// The current value; `None` if it has no value.
        current: Option<Box<StoredSetting>>,
    },
    /// Any other database or system error.
    #[error("the store failed: {0}")]
    Database(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    pub(crate) fn database(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Database(Arc::new(source))
    }

    pub(crate) fn inaccessible(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            ErrorKind::StorageFull => Self::Full { path },
            _ => Self::Inaccessible {
                action: doing,
                path,
                source: Arc::new(source),
            },
        }
    }

    /// Returns whether the store can be read but not written: a full or read-only disk.
    pub fn is_unwritable(&self) -> bool {
        matches!(
            self,
            Self::Full { .. } | Self::ReadOnly { .. } | Self::Inaccessible { .. }
        )
    }

    /// Returns the error for using a closed store.
    pub(crate) fn store_closed() -> Self {
        Self::database(StoreClosed)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("it has been closed")]
struct StoreClosed;
