//! What all repairs of a process share.

use std::cell::{Cell, OnceCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::time::Instant;
use unstuck_core::guard_files::Baseline;
use unstuck_core::repair::Book;
use unstuck_repair::guard_files::Committed;
use unstuck_repair::sandbox::Effective;

/// Whoever knows about repairs.
pub trait KnowsRepairs {
    /// What they know.
    fn book(&self) -> &Book;
}

impl KnowsRepairs for Book {
    fn book(&self) -> &Book {
        self
    }
}

/// What all repairs of a process share.
#[derive(Clone, Copy)]
pub struct Workshop<'a> {
    /// What is known about repairs; looked up only when something fails, so that what works starts at once.
    pub knows: &'a dyn KnowsRepairs,
    /// Where what is needed to take a run up again is kept, outside the project.
    pub state: &'a Path,
    /// Folders and files of unstuck's own, which no repair sees.
    pub own: &'a [PathBuf],
    /// The owner's environment.
    pub environment: &'a [(OsString, OsString)],
    /// The project's files as they were committed before anything ran.
    pub committed: &'a dyn Committed,
    /// The files that the owner has accepted as they were.
    pub accepted: &'a dyn Fn(&Path) -> Baseline,
    /// What a sandbox can do on this machine, once it was tried.
    pub surveyed: &'a OnceCell<Effective>,
    /// When the newest repair of this process began, by a clock that nobody can set.
    pub newest: &'a Cell<Option<Instant>>,
}
