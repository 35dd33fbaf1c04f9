//! Where the repository of a project is, and calls of git that can mean no other one.
//!
//! The work tree is the folder in which `.git` was found. What the repository's own configuration says about that is compared, never
//! obeyed: an agent can write it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use unstuck_files::{DirHandle, EntryKind};

use super::error::{WorktreeError, WorktreeIoContext};
use super::git_command::GitCommand;
use super::git_program::GitProgram;

/// A `.git` file, or one of its like, is no longer than this.
const MAX_LINK_FILE_BYTES: u64 = 64 << 10;

/// Folders of a repository that git writes to or reads from: a link in their place would lead it elsewhere.
const VERIFIED_DIRS: &[&str] = &[
    "objects",
    "objects/pack",
    "objects/info",
    "refs",
    "refs/unstuck",
    "info",
    "logs",
];

/// Files of a repository that git reads: a FIFO in their place would never end.
const VERIFIED_FILES: &[&str] = &[
    "HEAD",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "index",
    "packed-refs",
    "shallow",
    "info/exclude",
    "info/attributes",
    "info/grafts",
    "objects/info/alternates",
];

/// A repository with a work tree.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// The root folder of the work tree.
    pub(super) root: PathBuf,
    folder: GitDir,
    program: GitProgram,
}

/// The folders in which a repository keeps what it knows.
#[derive(Debug, Clone)]
pub(super) struct GitDir {
    /// The one of this work tree.
    worktree_dir: PathBuf,
    /// The one that linked work trees share, where that is another.
    common_dir: Option<PathBuf>,
}

impl Repository {
    /// The repository that a folder is in.
    pub(super) fn find(project: &Path) -> Result<Self, WorktreeError> {
        let repository = Self::found(project)?;
        repository.verify_with_git(project, None)?;
        Ok(repository)
    }

    /// The repository that a folder is in, and the id of one of its commits.
    pub(super) fn with_commit(project: &Path, name: &str) -> Result<(Self, String), WorktreeError> {
        // A name may come from a file: it must not be an option, nor name anything that is no commit.
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let missing =
            || WorktreeError::from_git_stderr("find the commit", b"there is no such commit");
        if name.is_empty() || !is_plain {
            return Err(missing());
        }
        let repository = Self::found(project)?;
        let commit = repository.verify_with_git(project, Some(name))?;
        Ok((repository, commit.ok_or_else(missing)?))
    }

    fn found(project: &Path) -> Result<Self, WorktreeError> {
        let none = || WorktreeError::NoRepository {
            project: project.to_owned(),
        };
        let real = project.canonicalize().context("open", project)?;
        let root = real.ancestors().find(|folder| has_repository(folder));
        let Some(root) = root.map(Path::to_owned) else {
            // Without git there is nothing to say about repositories.
            GitProgram::find(&[&real]).ok_or(WorktreeError::GitNotFound)?;
            return Err(none());
        };
        let program = GitProgram::find(&[&root, &real]).ok_or(WorktreeError::GitNotFound)?;
        let folder = GitDir::find(&root)?;
        folder.verify()?;
        Ok(Self {
            root,
            folder,
            program,
        })
    }

    /// Asks git what it would take for the repository, and refuses anything else than what was found. The same call tells the id of
    /// a commit, if there is such a one.
    fn verify_with_git(
        &self,
        project: &Path,
        commit: Option<&str>,
    ) -> Result<Option<String>, WorktreeError> {
        // Without GIT_DIR in its environment git also looks at who owns the repository.
        let call = GitCommand::new(&self.program, &self.root, "find the repository");
        let call = call.args(["rev-parse", "--absolute-git-dir", "--show-toplevel"]);
        let wanted = commit.map(|name| format!("{name}^{{commit}}"));
        let call = call.args(
            wanted
                .iter()
                .flat_map(|wanted| ["--verify", wanted.as_str()]),
        );
        let answer = call.outside_of_work_tree().run()?;
        let said = String::from_utf8_lossy(&answer.stderr);
        if said.contains("dubious ownership") {
            return Err(WorktreeError::UnsafeOwner {
                project: project.to_owned(),
            });
        }
        if said.contains("not a git repository") || said.contains("must be run in a work tree") {
            return Err(WorktreeError::NoRepository {
                project: project.to_owned(),
            });
        }
        let expected = [self.folder.worktree_dir.as_os_str(), self.root.as_os_str()];
        let expected = [&expected.map(OsStr::as_bytes).join(&b'\n'), &b"\n"[..]].concat();
        let id = answer.stdout.strip_prefix(expected.as_slice());
        // Where there is no such commit, git fails after it has told the rest.
        if !answer.status.success() && (id.is_none() || commit.is_none()) {
            return Err(WorktreeError::from_git_stderr(
                "find the repository",
                &answer.stderr,
            ));
        }
        let Some(id) = id else {
            let told = String::from_utf8_lossy(&answer.stdout);
            let told = told.trim_end().replace('\n', " for ");
            return Err(self
                .folder
                .redirected_error(&format!("its configuration names another folder ({told})")));
        };
        let id = String::from_utf8_lossy(id.trim_ascii()).into_owned();
        Ok(Some(id).filter(|id| answer.status.success() && !id.is_empty()))
    }

    /// The folder of the work tree's own settings, and that of the whole repository's.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let GitDir {
            worktree_dir: own,
            common_dir: common,
        } = &self.folder;
        let common = common.iter().filter(|common| *common != own);
        std::iter::once(own).chain(common).cloned().collect()
    }

    /// A call of git on this repository, whatever its configuration says about where its work tree is.
    pub(super) fn git_command(&self, doing: &'static str) -> GitCommand<'_> {
        GitCommand::new(&self.program, &self.root, doing)
            .verifying(&self.folder)
            .env("GIT_DIR", &self.folder.worktree_dir)
            .env("GIT_WORK_TREE", &self.root)
    }

    /// A call of git on this repository that opens no file of the work tree.
    pub(super) fn git_outside(&self, doing: &'static str) -> GitCommand<'_> {
        self.git_command(doing).outside_of_work_tree()
    }
}

/// Whether git would take what is in a folder for a repository.
fn has_repository(folder: &Path) -> bool {
    let git = folder.join(".git");
    let Ok(data) = git.symlink_metadata() else {
        return false;
    };
    !data.is_dir() || git.join("HEAD").symlink_metadata().is_ok()
}

impl GitDir {
    /// Finds the folder of the repository whose work tree is here.
    fn find(root: &Path) -> Result<Self, WorktreeError> {
        let git = root.join(".git");
        let plain = Self {
            worktree_dir: git.clone(),
            common_dir: None,
        };
        let work_tree = DirHandle::open(root).context("open", root)?;
        match work_tree.kind(Path::new(".git")) {
            Some(EntryKind::Directory) => return Ok(plain),
            Some(EntryKind::File) => {}
            Some(EntryKind::Symlink) => return Err(plain.redirected_error("it is a symbolic link")),
            Some(EntryKind::Other) | None => return Err(plain.redirected_error("it is not a file")),
        }
        let text = work_tree
            .read(Path::new(".git"), MAX_LINK_FILE_BYTES)
            .context("read", &git)?;
        let named = text.strip_prefix(b"gitdir: ").map(first_line);
        let named = named.ok_or_else(|| plain.redirected_error("it names no folder"))?;
        let own = root.join(named).canonicalize().context("find", &git)?;
        let common = own.join("commondir");
        let common = match read_first_line(&common) {
            Some(named) => Some(own.join(named).canonicalize().context("find", &common)?),
            None => None,
        };
        if !is_linked_back(&own, &git) && !is_submodule(&own, root) {
            return Err(plain.redirected_error(&format!(
                "it names {}, which does not belong to this folder",
                own.display()
            )));
        }
        Ok(Self {
            worktree_dir: own,
            common_dir: common,
        })
    }

    fn redirected_error(&self, why: &str) -> WorktreeError {
        WorktreeError::Redirected {
            repository: self.worktree_dir.clone(),
            reason: why.to_owned(),
        }
    }

    /// Makes sure that nothing which git is going to read or write is elsewhere.
    pub(super) fn verify(&self) -> Result<(), WorktreeError> {
        for folder in std::iter::once(&self.worktree_dir).chain(&self.common_dir) {
            let opened = DirHandle::open_resolved(folder).context("open", folder)?;
            let is_last = self
                .common_dir
                .as_ref()
                .is_none_or(|common| common == folder);
            if is_last && opened.kind(Path::new("commondir")).is_some() {
                return Err(self.redirected_error("its commondir names another folder"));
            }
            let wrong = |names: &[&str], right: EntryKind| {
                let mut names = names.iter().map(Path::new);
                names.find_map(|name| {
                    let kind = opened.kind(name)?;
                    (kind != right).then(|| name.display().to_string())
                })
            };
            let wrong = wrong(VERIFIED_DIRS, EntryKind::Directory)
                .or_else(|| wrong(VERIFIED_FILES, EntryKind::File));
            if let Some(name) = wrong {
                return Err(self.redirected_error(&format!("its {name} is not what git makes")));
            }
            for objects in ["objects", "refs/unstuck"] {
                let entries = opened.entries(Path::new(objects)).unwrap_or_default();
                let is_link = |entry: &unstuck_files::DirEntry| entry.kind == EntryKind::Symlink;
                if entries.iter().any(is_link) {
                    return Err(self.redirected_error(&format!("there is a link in its {objects}")));
                }
            }
        }
        Ok(())
    }
}

/// The first line of a short file.
fn read_first_line(path: &Path) -> Option<PathBuf> {
    let bytes = unstuck_files::read_named(path, MAX_LINK_FILE_BYTES).ok()?;
    Some(first_line(&bytes))
}

fn first_line(bytes: &[u8]) -> PathBuf {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let line = &bytes[..end.unwrap_or(bytes.len())];
    PathBuf::from(OsString::from_vec(line.to_vec()))
}

/// Whether the folder of a linked work tree names the `.git` file that names it.
fn is_linked_back(own: &Path, git: &Path) -> bool {
    let Some(named) = read_first_line(&own.join("gitdir")) else {
        return false;
    };
    let real = |path: &Path| path.canonicalize().ok();
    let named = real(&own.join(named));
    named.is_some() && named == real(git)
}

/// Whether the folder of a repository is among the submodules of one above its work tree.
fn is_submodule(own: &Path, root: &Path) -> bool {
    let above = root.ancestors().skip(1).find(|one| has_repository(one));
    let above = above.and_then(|above| GitDir::find(above).ok());
    above.is_some_and(|above| own.starts_with(above.worktree_dir.join("modules")))
}
