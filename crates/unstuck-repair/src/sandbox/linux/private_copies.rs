//! Private copies: directories that a command may change freely, because its writes are checked before they take
//! effect.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, Timespec, mkdirat, statat, unlinkat};

use crate::sandbox::git_dirs::{AllowedGitDirChanges, GIT_DIR};
use crate::sandbox::path_lists::OutsideProjectEntryRule;
use crate::sandbox::scratch_dir;
use crate::sandbox::wire::{SandboxDirectoryCopy, SandboxRequest};

use super::EnteredNamespaces;
use super::merge_allowed_writes::{self, MergeReport, PrivateGitDir};
use super::mounts::is_home_outside_project;

/// The upper directory of an overlay.
pub(super) const UPPER_DIR: &str = "upper";
/// The work directory of an overlay.
pub(super) const WORK_DIR: &str = "work";

/// The private copies for one command.
#[derive(Debug)]
pub(in crate::sandbox) struct PrivateCopies {
    git: Option<GitCopyDirs>,
    tools: Vec<ToolCopyDirs>,
    since: Timespec,
    /// If set, the command cannot reach git's directory of the project at all.
    is_git_out_of_reach: bool,
}

#[derive(Debug)]
struct GitCopyDirs {
    upper: OwnedFd,
    real: OwnedFd,
    /// The project, if it had no repository and an empty directory serves as a placeholder.
    placeholder_parent: Option<OwnedFd>,
}

#[derive(Debug)]
struct ToolCopyDirs {
    at: PathBuf,
    real: OwnedFd,
    /// Directory of the writes: a separate one, or a part of the writes to the home directory.
    upper: PathBuf,
}

impl PrivateCopies {
    /// Prepares the private copies and adds them to the request.
    pub(in crate::sandbox) fn prepare(
        order: &mut SandboxRequest,
        entered: EnteredNamespaces,
        project: &OwnedFd,
    ) -> io::Result<Self> {
        let mut copies = Self {
            git: None,
            tools: Vec::new(),
            since: merge_allowed_writes::kernel_time(),
            is_git_out_of_reach: false,
        };
        if !entered.has_mount_namespace || order.profile.overlay.is_some() {
            return Ok(copies);
        }
        let writable: Vec<_> = order.profile.writable_in_project().collect();
        if writable.is_empty() {
            copies.git = prepare_git_copy(order, project)?;
        } else {
            let root = order.profile.root.join(GIT_DIR);
            let is_apart = |path: &PathBuf| !path.starts_with(&root) && !root.starts_with(path);
            copies.is_git_out_of_reach = writable.iter().all(is_apart);
        }
        copies.tools = prepare_tool_copies(order)?;
        Ok(copies)
    }

    /// True if the command cannot change git's directory of the project itself.
    pub(in crate::sandbox) fn is_git_private(&self) -> bool {
        self.git.is_some() || self.is_git_out_of_reach
    }

    /// Merges the allowed changes.
    pub(in crate::sandbox) fn merge(
        self,
        order: &SandboxRequest,
        effects: AllowedGitDirChanges,
    ) -> MergeReport {
        let mut merged = MergeReport::default();
        if let Some(git) = self.git {
            let copy = PrivateGitDir {
                upper: &git.upper,
                real: &git.real,
                since: self.since,
                effects,
                is_new: git.placeholder_parent.is_some(),
            };
            if copy.merge(Path::new(GIT_DIR), &mut merged).is_err() {
                merged.conflicting_changes.push(GIT_DIR.into());
            }
            if let Some(project) = &git.placeholder_parent {
                // The placeholder stays if a repository was created in it.
                let _ = unlinkat(project, GIT_DIR, AtFlags::REMOVEDIR);
            }
        }
        let rules: BTreeMap<PathBuf, OutsideProjectEntryRule> =
            order.host.addable_dirs.iter().cloned().collect();
        for tool in self.tools {
            // A missing directory means that nothing was written.
            if let Ok(upper) = merge_allowed_writes::open_dir(&tool.upper) {
                // Changes that cannot be kept are discarded with the rest.
                let _ = merge_allowed_writes::merge_tool_dir(
                    &upper,
                    &tool.real,
                    &tool.at,
                    &rules,
                    &mut merged,
                );
            }
        }
        merged
    }
}

/// Prepares a private copy of git's directory. If there is no repository here or above, an empty directory serves as a
/// placeholder: git does not treat it as a repository, and nobody outside ever sees what a command puts there.
fn prepare_git_copy(
    order: &mut SandboxRequest,
    project: &OwnedFd,
) -> io::Result<Option<GitCopyDirs>> {
    let found = statat(project, GIT_DIR, AtFlags::SYMLINK_NOFOLLOW);
    let is_new = match found.map(|data| FileType::from_raw_mode(data.st_mode)) {
        Ok(FileType::Directory) => false,
        // A pointer to another place is read-only, and restored if it changes all the same.
        Ok(_) => return Ok(None),
        Err(_) if is_in_repository(&order.profile.root) => return Ok(None),
        Err(_) => true,
    };
    if is_new && mkdirat(project, GIT_DIR, Mode::from_raw_mode(0o755)).is_err() {
        return Ok(None);
    }
    let Some(real) = merge_allowed_writes::open_dir_below(project, Path::new(GIT_DIR)) else {
        return Ok(None);
    };
    let upper = add_copy_to_request(order, Path::new(GIT_DIR), true)?;
    Ok(Some(GitCopyDirs {
        upper: merge_allowed_writes::open_dir(&upper)?,
        real,
        placeholder_parent: if is_new {
            Some(project.try_clone()?)
        } else {
            None
        },
    }))
}

/// True if a parent directory belongs to a repository, which tools would not find behind a placeholder.
fn is_in_repository(root: &Path) -> bool {
    let mut above = root.ancestors().skip(1);
    above.any(|folder| folder.join(GIT_DIR).symlink_metadata().is_ok())
}

fn prepare_tool_copies(order: &mut SandboxRequest) -> io::Result<Vec<ToolCopyDirs>> {
    let profile = order.profile.clone();
    let home = order.host.home.clone();
    let home = home.filter(|home| is_home_outside_project(home, &profile));
    let mut tools: Vec<ToolCopyDirs> = Vec::new();
    for (at, _) in order.host.addable_dirs.clone() {
        let is_around = profile.root.starts_with(&at) || at.starts_with(&profile.root);
        let (Ok(real), false) = (merge_allowed_writes::open_dir(&at), is_around) else {
            continue;
        };
        let below_home = home.as_ref().and_then(|home| at.strip_prefix(home).ok());
        let around = order
            .copies
            .iter()
            .find(|copy| !copy.is_git && at.starts_with(&copy.path));
        let upper = match (below_home, around) {
            (Some(below), _) => order.host.scratch.join(scratch_dir::HOME_DIR).join(below),
            (None, Some(copy)) => {
                let below = at.strip_prefix(&copy.path).unwrap_or(Path::new(""));
                let scratch = &order.host.scratch;
                scratch.join(&copy.name).join(UPPER_DIR).join(below)
            }
            (None, None) => add_copy_to_request(order, &at, false)?,
        };
        tools.push(ToolCopyDirs { at, real, upper });
    }
    Ok(tools)
}

/// Creates the directories of a private copy and adds it to the request; returns the directory of the writes.
#[expect(
    clippy::disallowed_methods,
    reason = "creates directories in the private scratch directory, before the command starts"
)]
fn add_copy_to_request(order: &mut SandboxRequest, at: &Path, is_git: bool) -> io::Result<PathBuf> {
    let name = format!("copy-{}", order.copies.len());
    let folder = order.host.scratch.join(&name);
    std::fs::create_dir(&folder)?;
    for part in [UPPER_DIR, WORK_DIR] {
        std::fs::create_dir(folder.join(part))?;
    }
    order.copies.push(SandboxDirectoryCopy {
        path: at.to_owned(),
        name,
        is_git,
    });
    Ok(folder.join(UPPER_DIR))
}
