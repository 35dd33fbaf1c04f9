//! Why the store could not do its work.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use unstuck_core::event::RunId;

use crate::escalation::EscalationClosure;
use crate::settings::StoredSetting;

/// Why the store could not do its work; nothing of what was asked for has been done.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The location names a kind of store that this program cannot use.
    #[error("`{location}` is a kind of store that this build cannot use")]
    Unsupported {
        /// The location as it was given.
        location: String,
    },
    /// A newer unstuck has changed the store since.
    #[error(
        "the store {path} was written by a newer unstuck (schema {found}, this one knows {known})"
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The schema of the file.
        found: u32,
        /// The newest schema that is known here.
        known: u32,
    },
    /// The file is damaged.
    #[error("the store {path} is damaged: {detail}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The file is something else, and is left alone.
    #[error("{path} is not a store of unstuck, and was left as it is")]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error("the store {path} cannot be written: it, its folder or its disk is read-only")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder cannot be opened or made.
    #[error("cannot {action} {path}: {source}")]
    Inaccessible {
        /// What was tried, in words.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: Arc<std::io::Error>,
    },
    /// There is no room left.
    #[error("the disk of the store {path} is full")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Others were writing all the time.
    #[error("the store {path} was kept busy by another process for too long")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Another process drives the run now.
    #[error("run {run} has been taken over by another process")]
    LostLease {
        /// The run.
        run: RunId,
    },
    /// There is no such run.
    #[error("there is no run {run} in the store")]
    UnknownRun {
        /// The run.
        run: RunId,
    },
    /// A run of this id has begun already.
    #[error("there is already a run {run} in the store")]
    RunExists {
        /// The run.
        run: RunId,
    },
    /// There is no such question.
    #[error("there is no question {id}")]
    UnknownEscalation {
        /// The question.
        id: String,
    },
    /// The question was answered already.
    #[error("question {id} was answered already")]
    AlreadyAnswered {
        /// The question.
        id: String,
        /// The answer that came first.
        closure: Box<EscalationClosure>,
    },
    /// Something else is asked under this id than what was shown.
    #[error("question {id} has changed since it was shown")]
    EscalationChanged {
        /// The question.
        id: String,
    },
    /// Somebody else has changed the setting.
    #[error("the setting {key} has been changed by someone else since it was read")]
    SettingChanged {
        /// The setting.
        key: String,
        /// What it is now; none if it has no value.
        current: Option<Box<StoredSetting>>,
    },
    /// Something else that the database or the system said.
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

    /// Returns whether nothing can be written at present, while what is there can be read: a full or read-only disk.
    pub fn is_unwritable(&self) -> bool {
        matches!(
            self,
            Self::Full { .. } | Self::ReadOnly { .. } | Self::Inaccessible { .. }
        )
    }

    /// The store was used after it had been closed.
    pub(crate) fn store_closed() -> Self {
        Self::database(StoreClosed)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("it has been closed")]
struct StoreClosed;
