//! Locates the repository of a project, and runs git commands that can affect no other one.
//!
//! The work tree is the directory in which `.git` was found. The repository's own configuration about that is compared,
//! never obeyed: an agent can write it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use unstuck_files::{DirHandle, EntryKind, TrustedProgram};

use super::error::{WorktreeError, WorktreeIoContext};
use super::git_command::GitCommand;

/// Largest `.git` file or similar link file.
const MAX_LINK_FILE_BYTES: u64 = 64 << 10;

/// Directories of a repository that git reads or writes: a link in their place would redirect it.
const VERIFIED_DIRS: &[&str] = &[
    "objects",
    "objects/pack",
    "objects/info",
    "refs",
    "refs/unstuck",
    "info",
    "logs",
];

/// Files of a repository that git reads: a FIFO in their place would block forever.
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
    /// The root directory of the work tree.
    pub(super) root: PathBuf,
    folder: GitDir,
    program: TrustedProgram,
}

/// The directories of a repository's data.
#[derive(Debug, Clone)]
pub(super) struct GitDir {
    /// That of this work tree.
    worktree_dir: PathBuf,
    /// That shared by linked work trees, if different.
    common_dir: Option<PathBuf>,
}

impl Repository {
    /// Finds the repository that contains a directory.
    pub(super) fn find(project: &Path) -> Result<Self, WorktreeError> {
        let repository = Self::found(project)?;
        repository.verify_with_git(project, None)?;
        Ok(repository)
    }

    /// Finds the repository that contains a directory, and the id of one of its commits.
    pub(super) fn with_commit(project: &Path, name: &str) -> Result<(Self, String), WorktreeError> {
        // A name may come from a file: it must be neither an option nor the name of anything but a commit.
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let missing = || WorktreeError::from_git_stderr("find the commit", b"no such commit");
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
            // Without git, repositories cannot be used.
            find_git(&[&real]).ok_or(WorktreeError::GitNotFound)?;
            return Err(none());
        };
        let program = find_git(&[&root, &real]).ok_or(WorktreeError::GitNotFound)?;
        let folder = GitDir::find(&root)?;
        folder.verify()?;
        Ok(Self {
            root,
            folder,
            program,
        })
    }

    /// Asks git which repository it would use, and rejects any other than the one found. The same command returns the
    /// id of a commit, if it exists.
    fn verify_with_git(
        &self,
        project: &Path,
        commit: Option<&str>,
    ) -> Result<Option<String>, WorktreeError> {
        // Without GIT_DIR in its environment, git also checks the owner of the repository.
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
        // If the commit does not exist, git fails after it has printed the rest.
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
                .redirected_error(&format!("is configured to use another directory ({told})")));
        };
        let id = String::from_utf8_lossy(id.trim_ascii()).into_owned();
        Ok(Some(id).filter(|id| answer.status.success() && !id.is_empty()))
    }

    /// Returns the directories of the work tree's and of the whole repository's settings.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let GitDir {
            worktree_dir: own,
            common_dir: common,
        } = &self.folder;
        let common = common.iter().filter(|common| *common != own);
        std::iter::once(own).chain(common).cloned().collect()
    }

    /// Returns a git command for this repository, which ignores the configured work tree.
    pub(super) fn git_command(&self, doing: &'static str) -> GitCommand<'_> {
        let call = GitCommand::new(&self.program, &self.root, doing)
            .verifying(&self.folder)
            .env("GIT_DIR", &self.folder.worktree_dir)
            .env("GIT_WORK_TREE", &self.root);
        match &self.folder.common_dir {
            Some(common) => call.env("GIT_COMMON_DIR", common),
            None => call,
        }
    }

    /// Returns a git command for this repository that opens no file of the work tree.
    pub(super) fn git_outside(&self, doing: &'static str) -> GitCommand<'_> {
        self.git_command(doing).outside_of_work_tree()
    }
}

/// Returns true if git would take the contents of a directory for a repository.
fn has_repository(folder: &Path) -> bool {
    let git = folder.join(".git");
    let Ok(data) = git.symlink_metadata() else {
        return false;
    };
    !data.is_dir() || git.join("HEAD").symlink_metadata().is_ok()
}

impl GitDir {
    /// Finds the directory of the repository with this work tree.
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
            Some(EntryKind::Symlink) => return Err(plain.redirected_error("is a symbolic link")),
            Some(EntryKind::Other) | None => return Err(plain.redirected_error("is not a file")),
        }
        let text = work_tree
            .read(Path::new(".git"), MAX_LINK_FILE_BYTES)
            .context("read", &git)?;
        let named = text.strip_prefix(b"gitdir: ").map(first_line);
        let named = named.ok_or_else(|| plain.redirected_error("has no `gitdir:` line"))?;
        let own = root.join(named).canonicalize().context("find", &git)?;
        let refused = |why: &str| {
            plain.redirected_error(&format!("points to {}, which {why}", own.display()))
        };
        // An agent can write everything there.
        if own.starts_with(root) {
            return Err(refused("is in the project itself"));
        }
        let common = match read_first_line(&own.join("commondir")) {
            Some(named) => Some(own.join(named).canonicalize().context("find", &git)?),
            None => None,
        };
        match &common {
            // Only the repository that has this work tree in its own list is written to.
            Some(common) if own.parent() != Some(&common.join("worktrees")) => {
                return Err(refused("is not a linked work tree of its repository"));
            }
            Some(_) if !is_linked_back(&own, &git) => {
                return Err(refused("does not belong to this directory"));
            }
            None if !is_submodule(&own, root) => {
                return Err(refused("does not belong to this directory"));
            }
            _ => {}
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

    /// Checks that everything git is going to read or write is in its place.
    pub(super) fn verify(&self) -> Result<(), WorktreeError> {
        if let Some(common) = &self.common_dir {
            let named = read_first_line(&self.worktree_dir.join("commondir"));
            let named = named.and_then(|named| self.worktree_dir.join(named).canonicalize().ok());
            if named.as_ref() != Some(common) {
                return Err(
                    self.redirected_error("has a commondir that points to another directory")
                );
            }
        }
        for folder in std::iter::once(&self.worktree_dir).chain(&self.common_dir) {
            let opened = DirHandle::open_resolved(folder).context("open", folder)?;
            let is_last = self
                .common_dir
                .as_ref()
                .is_none_or(|common| common == folder);
            if is_last && opened.kind(Path::new("commondir")).is_some() {
                return Err(
                    self.redirected_error("has a commondir that points to another directory")
                );
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
                return Err(
                    self.redirected_error(&format!("has an unexpected file type at {name}"))
                );
            }
            for objects in ["objects", "refs/unstuck"] {
                let entries = opened.entries(Path::new(objects)).unwrap_or_default();
                let is_link = |entry: &unstuck_files::DirEntry| entry.kind == EntryKind::Symlink;
                if entries.iter().any(is_link) {
                    return Err(
                        self.redirected_error(&format!("contains a symbolic link in {objects}"))
                    );
                }
            }
        }
        Ok(())
    }
}

/// Returns the first line of a short file.
fn read_first_line(path: &Path) -> Option<PathBuf> {
    let bytes = unstuck_files::read_named(path, MAX_LINK_FILE_BYTES).ok()?;
    Some(first_line(&bytes))
}

/// Finds git outside of these directories.
fn find_git(projects: &[&Path]) -> Option<TrustedProgram> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    TrustedProgram::find("git", &search, projects)
}

fn first_line(bytes: &[u8]) -> PathBuf {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let line = &bytes[..end.unwrap_or(bytes.len())];
    PathBuf::from(OsString::from_vec(line.to_vec()))
}

/// Returns true if the directory of a linked work tree names the `.git` file that names it.
fn is_linked_back(own: &Path, git: &Path) -> bool {
    let Some(named) = read_first_line(&own.join("gitdir")) else {
        return false;
    };
    let real = |path: &Path| path.canonicalize().ok();
    let named = real(&own.join(named));
    named.is_some() && named == real(git)
}

/// Returns true if a repository's directory is among the submodules of a repository above its work tree.
fn is_submodule(own: &Path, root: &Path) -> bool {
    let above = root.ancestors().skip(1).find(|one| has_repository(one));
    let above = above.and_then(|above| GitDir::find(above).ok());
    above.is_some_and(|above| own.starts_with(above.worktree_dir.join("modules")))
}
