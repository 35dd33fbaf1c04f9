//! The context shared by all repairs of a process.

use std::cell::{Cell, OnceCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::time::Instant;
use unstuck_core::repair::RepairCatalog;
use unstuck_core::watched_files::WatchedFileBaseline;
use unstuck_repair::sandbox::ConfinementReport;
use unstuck_repair::watched_files::LastCommitFiles;

/// A source of the repair catalog.
pub trait RepairCatalogProvider {
    /// Returns the repair catalog.
    fn catalog(&self) -> &RepairCatalog;
}

impl RepairCatalogProvider for RepairCatalog {
    fn catalog(&self) -> &RepairCatalog {
        self
    }
}

/// The context shared by all repairs of a process.
#[derive(Clone, Copy)]
pub struct SharedRepairContext<'a> {
    /// The source of the catalog; loaded only when something fails, so that a success starts at once.
    pub catalog_source: &'a dyn RepairCatalogProvider,
    /// The state directory, outside of the project.
    pub state: &'a Path,
    /// Directories and files of unstuck itself, which are hidden from repairs.
    pub hidden_paths: &'a [PathBuf],
    /// The owner's environment.
    pub environment: &'a [(OsString, OsString)],
    /// The project's files as they were committed before anything ran.
    pub committed: &'a dyn LastCommitFiles,
    /// The files whose current contents the owner has accepted.
    pub accepted: &'a dyn Fn(&Path) -> WatchedFileBaseline,
    /// The sandbox features of this machine, once they were probed.
    pub confinement: &'a OnceCell<ConfinementReport>,
    /// Start of the newest repair of this process, by a monotonic clock.
    pub last_started: &'a Cell<Option<Instant>>,
}
