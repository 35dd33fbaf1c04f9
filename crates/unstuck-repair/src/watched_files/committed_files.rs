//! What was committed last, as those tell who can ask git.

use std::path::PathBuf;

/// What was committed last.
pub trait CommittedFiles {
    /// The contents of files, by their paths from the root of the project, in the same order; none for a file that was
    /// not committed. None at all if there is no commit, or it cannot be told.
    fn contents(&self, paths: &[String]) -> Option<Vec<Option<Vec<u8>>>>;

    /// The folders in which git keeps its own settings and hooks.
    fn git_dirs(&self) -> Vec<PathBuf>;

    /// The id of the commit; none where there is none.
    fn commit(&self) -> Option<String> {
        None
    }
}

/// A project without commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCommits;

impl CommittedFiles for NoCommits {
    fn contents(&self, _paths: &[String]) -> Option<Vec<Option<Vec<u8>>>> {
        None
    }

    fn git_dirs(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}
