//! What all repairs of a process share.

use std::cell::{Cell, OnceCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::time::Instant;
use unstuck_core::repair::RepairCatalog;
use unstuck_core::watched_files::AcceptedParts;
use unstuck_repair::sandbox::ConfinementReport;
use unstuck_repair::watched_files::CommittedFiles;

/// Whoever knows about repairs.
pub trait RepairCatalogSource {
    /// What they know.
    fn catalog(&self) -> &RepairCatalog;
}

impl RepairCatalogSource for RepairCatalog {
    fn catalog(&self) -> &RepairCatalog {
        self
    }
}

/// What all repairs of a process share.
#[derive(Clone, Copy)]
pub struct RepairContext<'a> {
    /// What is known about repairs; looked up only when something fails, so that what works starts at once.
    pub catalog_source: &'a dyn RepairCatalogSource,
    /// Where what is needed to take a run up again is kept, outside the project.
    pub state: &'a Path,
    /// Folders and files of unstuck's own, which no repair sees.
    pub hidden_paths: &'a [PathBuf],
    /// The owner's environment.
    pub environment: &'a [(OsString, OsString)],
    /// The project's files as they were committed before anything ran.
    pub committed: &'a dyn CommittedFiles,
    /// The files that the owner has accepted as they were.
    pub accepted: &'a dyn Fn(&Path) -> AcceptedParts,
    /// What a sandbox can do on this machine, once it was tried.
    pub confinement: &'a OnceCell<ConfinementReport>,
    /// When the newest repair of this process began, by a clock that nobody can set.
    pub last_started: &'a Cell<Option<Instant>>,
}
