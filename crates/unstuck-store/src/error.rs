//! Store errors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use unstuck_core::event::RunId;

use crate::escalation::EscalationClosure;
use crate::stored_settings::StoredSetting;

/// A failed store operation; it has changed nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The location names an unsupported kind of store.
    #[error("unsupported store `{location}`")]
    Unsupported {
        /// The location as given.
        location: String,
    },
    /// The store was written by a newer unstuck.
    #[error("the store {path} was written by a newer unstuck (schema {found}, supported: {known})")]
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
    #[error("{path} is not an unstuck store; it was not changed")]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory is read-only.
    #[error(
        "cannot write to the store {path}: the file, its directory or its file system is read-only"
    )]
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
    #[error("cannot write to the store {path}: the disk is full")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Other processes kept the store locked until the timeout.
    #[error("the store {path} is locked by another process")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Another process now supervises the run.
    #[error("run {run} was taken over by another process")]
    LostLease {
        /// The run.
        run: RunId,
    },
    /// The run does not exist.
    #[error("run `{run}` not found")]
    UnknownRun {
        /// The run.
        run: RunId,
    },
    /// A run with this id exists already.
    #[error("run `{run}` already exists")]
    RunExists {
        /// The run.
        run: RunId,
    },
    /// The escalation does not exist.
    #[error("request `{id}` not found")]
    UnknownEscalation {
        /// The escalation id.
        id: String,
    },
    /// The escalation was already answered.
    #[error("request `{id}` is already answered")]
    AlreadyAnswered {
        /// The escalation id.
        id: String,
        /// The first answer.
        closure: Box<EscalationClosure>,
    },
    /// The escalation has changed since it was shown.
    #[error("request `{id}` changed since it was shown")]
    EscalationChanged {
        /// The escalation id.
        id: String,
    },
    /// The setting was changed by someone else.
    #[error("setting `{key}` changed since it was read")]
    SettingChanged {
        /// The setting key.
        key: String,
        /// The current value; `None` if it has no value.
        current: Option<Box<StoredSetting>>,
    },
    /// Any other database or system error.
    #[error("store error: {0}")]
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
#[error("already closed")]
struct StoreClosed;
