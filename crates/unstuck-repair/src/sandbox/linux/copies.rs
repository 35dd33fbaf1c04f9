//! Private copies: folders that a command may change as it likes, because what it wrote is looked at before it counts.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, Timespec, mkdirat, statat, unlinkat};

use crate::sandbox::git::{GitEffects, NAME};
use crate::sandbox::lists::Adding;
use crate::sandbox::scratch;
use crate::sandbox::wire::{Order, PrivateCopy};

use super::Entered;
use super::merge::{self, GitCopy, Merged};
use super::mounts::is_apart;

/// What an overlay writes to.
pub(super) const UPPER: &str = "upper";
/// What the kernel needs for that.
pub(super) const WORK: &str = "work";

/// The private copies of one command.
#[derive(Debug)]
pub(in crate::sandbox) struct Copies {
    git: Option<Git>,
    tools: Vec<Tool>,
    since: Timespec,
    /// Whether the command cannot reach git's folder of the project at all.
    is_git_out_of_reach: bool,
}

#[derive(Debug)]
struct Git {
    upper: OwnedFd,
    real: OwnedFd,
    /// The project, where there was no repository and an empty folder holds its place.
    placeholder_in: Option<OwnedFd>,
}

#[derive(Debug)]
struct Tool {
    at: PathBuf,
    real: OwnedFd,
    /// Where what was written is: a folder of its own, or a part of what was written to the home folder.
    upper: PathBuf,
}

impl Copies {
    /// Prepares what is needed for them, and notes them in the order.
    pub(in crate::sandbox) fn prepare(
        order: &mut Order,
        entered: Entered,
        project: &OwnedFd,
    ) -> io::Result<Self> {
        let mut copies = Self {
            git: None,
            tools: Vec::new(),
            since: merge::now(),
            is_git_out_of_reach: false,
        };
        if !entered.mounts || order.profile.overlay.is_some() {
            return Ok(copies);
        }
        let writable: Vec<_> = order.profile.writable_in_project().collect();
        if writable.is_empty() {
            copies.git = git(order, project)?;
        } else {
            let root = order.profile.root.join(NAME);
            let is_apart = |path: &PathBuf| !path.starts_with(&root) && !root.starts_with(path);
            copies.is_git_out_of_reach = writable.iter().all(is_apart);
        }
        copies.tools = tools(order)?;
        Ok(copies)
    }

    /// Whether the command cannot change git's folder of the project itself.
    pub(in crate::sandbox) fn is_git_private(&self) -> bool {
        self.git.is_some() || self.is_git_out_of_reach
    }

    /// Takes over what may be kept.
    pub(in crate::sandbox) fn merge(self, order: &Order, effects: GitEffects) -> Merged {
        let mut merged = Merged::default();
        if let Some(git) = self.git {
            let copy = GitCopy {
                upper: &git.upper,
                real: &git.real,
                since: self.since,
                effects,
                is_new: git.placeholder_in.is_some(),
            };
            if copy.merge(Path::new(NAME), &mut merged).is_err() {
                merged.overtaken.push(NAME.into());
            }
            if let Some(project) = &git.placeholder_in {
                // It stays where a repository was made in it.
                let _ = unlinkat(project, NAME, AtFlags::REMOVEDIR);
            }
        }
        let rules: BTreeMap<PathBuf, Adding> = order.surroundings.adding.iter().cloned().collect();
        for tool in self.tools {
            // Nothing was written where there is no folder.
            if let Ok(upper) = merge::open(&tool.upper) {
                // What cannot be kept is thrown away with the rest.
                let _ = merge::add(&upper, &tool.real, &tool.at, &rules, &mut merged);
            }
        }
        merged
    }
}

/// A private copy of git's folder. Where there is none, and none above, an empty folder holds its place: git takes it for
/// no repository, and nobody outside ever sees what a command puts there.
fn git(order: &mut Order, project: &OwnedFd) -> io::Result<Option<Git>> {
    let found = statat(project, NAME, AtFlags::SYMLINK_NOFOLLOW);
    let is_new = match found.map(|data| FileType::from_raw_mode(data.st_mode)) {
        Ok(FileType::Directory) => false,
        // What names another place is read-only, and put back if it changes all the same.
        Ok(_) => return Ok(None),
        Err(_) if is_in_repository(&order.profile.root) => return Ok(None),
        Err(_) => true,
    };
    if is_new && mkdirat(project, NAME, Mode::from_raw_mode(0o755)).is_err() {
        return Ok(None);
    }
    let Some(real) = merge::open_below(project, Path::new(NAME)) else {
        return Ok(None);
    };
    let upper = note(order, Path::new(NAME), true)?;
    Ok(Some(Git {
        upper: merge::open(&upper)?,
        real,
        placeholder_in: match is_new {
            true => Some(project.try_clone()?),
            false => None,
        },
    }))
}

/// Whether a folder above belongs to a repository, which tools would not find behind an empty one.
fn is_in_repository(root: &Path) -> bool {
    let mut above = root.ancestors().skip(1);
    above.any(|folder| folder.join(NAME).symlink_metadata().is_ok())
}

fn tools(order: &mut Order) -> io::Result<Vec<Tool>> {
    let profile = order.profile.clone();
    let home = order.surroundings.home.clone();
    let home = home.filter(|home| is_apart(home, &profile));
    let mut tools: Vec<Tool> = Vec::new();
    for (at, _) in order.surroundings.adding.clone() {
        let is_around = profile.root.starts_with(&at) || at.starts_with(&profile.root);
        let (Ok(real), false) = (merge::open(&at), is_around) else {
            continue;
        };
        let below_home = home.as_ref().and_then(|home| at.strip_prefix(home).ok());
        let around = order
            .copies
            .iter()
            .find(|copy| !copy.is_git && at.starts_with(&copy.at));
        let upper = match (below_home, around) {
            (Some(below), _) => order.surroundings.scratch.join(scratch::HOME).join(below),
            (None, Some(copy)) => {
                let below = at.strip_prefix(&copy.at).unwrap_or(Path::new(""));
                let scratch = &order.surroundings.scratch;
                scratch.join(&copy.name).join(UPPER).join(below)
            }
            (None, None) => note(order, &at, false)?,
        };
        tools.push(Tool { at, real, upper });
    }
    Ok(tools)
}

/// Makes the folders of a private copy and notes it; returns where what is written goes.
fn note(order: &mut Order, at: &Path, is_git: bool) -> io::Result<PathBuf> {
    let name = format!("copy-{}", order.copies.len());
    let folder = order.surroundings.scratch.join(&name);
    std::fs::create_dir(&folder)?;
    for part in [UPPER, WORK] {
        std::fs::create_dir(folder.join(part))?;
    }
    order.copies.push(PrivateCopy {
        at: at.to_owned(),
        name,
        is_git,
    });
    Ok(folder.join(UPPER))
}
