//! Access to the last commit of a project.

use std::path::PathBuf;

/// The files of the last commit.
pub trait LastCommitFiles {
    /// Returns the contents of files by their paths from the root of the project, in the same order; `None` for a file
    /// that was not committed. Returns `None` if there is no commit, or it cannot be read.
    fn contents(&self, paths: &[String]) -> Option<Vec<Option<Vec<u8>>>>;

    /// Returns the directories in which git keeps its own settings and hooks.
    fn git_dirs(&self) -> Vec<PathBuf>;

    /// Returns the id of the commit, or `None` if there is none.
    fn commit(&self) -> Option<String> {
        None
    }
}

/// A project without commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCommits;

impl LastCommitFiles for NoCommits {
    fn contents(&self, _paths: &[String]) -> Option<Vec<Option<Vec<u8>>>> {
        None
    }

    fn git_dirs(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}
