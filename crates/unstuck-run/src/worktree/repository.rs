//! Where the repository of a project is, and calls of git that can mean no other one.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::error::WorktreeError;
use super::git::Call;

/// A repository with a work tree.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// The root folder of the work tree.
    pub(super) root: PathBuf,
    git_dir: PathBuf,
}

impl Repository {
    /// The repository that a folder is in.
    pub(super) fn of(project: &Path) -> Result<Self, WorktreeError> {
        let find = |what: &str| Self::ask(project, what);
        Ok(Self {
            root: find("--show-toplevel")?,
            git_dir: find("--absolute-git-dir")?,
        })
    }

    fn ask(project: &Path, what: &str) -> Result<PathBuf, WorktreeError> {
        let call = Call::new(project, "find the repository").args(["rev-parse", what]);
        let mut answer = call.answer()?;
        let said = String::from_utf8_lossy(&answer.stderr);
        if said.contains("dubious ownership") {
            return Err(WorktreeError::Distrusted {
                project: project.to_owned(),
            });
        }
        if said.contains("not a git repository") || said.contains("must be run in a work tree") {
            return Err(WorktreeError::NoRepository {
                project: project.to_owned(),
            });
        }
        if !answer.status.success() {
            return Err(WorktreeError::said("find the repository", &answer.stderr));
        }
        answer.stdout.pop_if(|last| *last == b'\n');
        Ok(PathBuf::from(std::ffi::OsString::from_vec(answer.stdout)))
    }

    /// A call of git on this repository, whatever its configuration says about where its work tree is.
    pub(super) fn git(&self, doing: &'static str) -> Call {
        Call::new(&self.root, doing)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_WORK_TREE", &self.root)
    }
}
