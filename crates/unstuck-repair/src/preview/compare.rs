//! Compares the command's result with the original tree, by content.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::change_set::{
    ChangeSet, EntryChange, EntryState, FilesRewrittenUnchanged, PermissionBitsChange,
    PlannedEntryState, StatFingerprint, SwapMode, SwapUnit, TouchedPath, TreeEntryKind,
    permissions,
};
use super::error::PreviewError;
use super::file_compare;
use super::limits::PreviewLimits;
use super::nofollow_access;
use super::overlay_reader::{self, OverlayDir, OverlayEntry, UpperDirRelation, UpperLayerEntry};
use super::tree_path::TreePath;
use super::unit_splitting::minimize_units;
use crate::sandbox::{ProjectRepositories, git_dirs};

type Result<T> = std::result::Result<T, PreviewError>;

/// The input of a comparison.
#[derive(Debug)]
pub(super) struct CompareInput<'a> {
    /// Root of the project.
    pub(super) lower: &'a OwnedFd,
    /// Writes of the command.
    pub(super) upper: &'a OwnedFd,
    /// Protected paths; anything created there is reported and left out.
    pub(super) protected: &'a [TreePath],
    pub(super) bounds: PreviewLimits,
}

/// Returns all differences.
pub(super) fn compare(what: &CompareInput<'_>) -> Result<ChangeSet> {
    let root = TreePath::default();
    let again = |folder: &OwnedFd| nofollow_access::open_dir(folder, b".");
    let failed = |error| unreadable(&root, error);
    let upper = again(what.upper).map_err(failed)?;
    let here = OverlayDir::merged(upper, again(what.lower).map_err(failed)?);
    let mut walk = LayerWalk {
        input: what,
        found: ChangeSet::default(),
        rewritten: BTreeMap::new(),
        entries: 0,
        bytes: 0,
    };
    walk.permissions_of_root(&root)?;
    walk.compare_merged_dir(&root, &here, 0)?;
    let rewritten = walk.rewritten.into_iter();
    let rewritten = rewritten.map(|(folder, files)| FilesRewrittenUnchanged { folder, files });
    walk.found.rewritten = rewritten.collect();
    Ok(minimize_units(walk.found))
}

pub(super) fn unreadable(path: &TreePath, error: Errno) -> PreviewError {
    PreviewError::Unreadable {
        path: path.display(),
        source: error.into(),
    }
}

struct LayerWalk<'a> {
    input: &'a CompareInput<'a>,
    found: ChangeSet,
    /// Number of files rewritten unchanged, by directory.
    rewritten: BTreeMap<TreePath, u64>,
    entries: u64,
    bytes: u64,
}

impl LayerWalk<'_> {
    fn permissions_of_root(&mut self, root: &TreePath) -> Result<()> {
        let data = |folder| rustix::fs::fstat(folder).map_err(|error| unreadable(root, error));
        let (before, after) = (data(self.input.lower)?, data(self.input.upper)?);
        self.compare_permissions(root, &before, &after)
    }

    /// Compares a directory that stays: only entries written into it can differ.
    fn compare_merged_dir(
        &mut self,
        path: &TreePath,
        here: &OverlayDir,
        depth: usize,
    ) -> Result<()> {
        self.check_limits(path, depth)?;
        let failed = |error| unreadable(path, error);
        for (name, mark) in here.written_entries().map_err(failed)? {
            let at = path.join(&name);
            if self.input.protected.contains(&at) {
                self.found.protected.push(at);
                continue;
            }
            let below = here.lower_stat(&name).map_err(failed)?;
            if self.is_protected_git_entry(&at, here, &name, &mark, below.is_some()) {
                self.found.protected.push(at);
                continue;
            }
            if let (UpperLayerEntry::Present(data), Some(below)) = (&mark, &below)
                && [data, below].map(TreeEntryKind::from_stat)
                    == [Some(TreeEntryKind::Directory); 2]
                && here.lower_layer_relation(&name).map_err(failed)? == UpperDirRelation::Merged
            {
                self.compare_permissions(&at, below, data)?;
                let inner = here.child(&name, self.input.lower).map_err(failed)?;
                self.compare_merged_dir(&at, &inner, depth + 1)?;
                continue;
            }
            if self.contains_protected_path(&at, here, &name) {
                self.found.protected.push(at);
                continue;
            }
            self.compare_unit(&at, here, &name, depth)?;
        }
        Ok(())
    }

    /// True if git would obey a new entry: a new repository anywhere, or a protected entry of an existing one.
    fn is_protected_git_entry(
        &self,
        at: &TreePath,
        here: &OverlayDir,
        name: &[u8],
        mark: &UpperLayerEntry,
        was_there: bool,
    ) -> bool {
        let mut inside = at
            .parts()
            .skip_while(|part| !part.eq_ignore_ascii_case(b".git"));
        let kind = match mark {
            UpperLayerEntry::Whiteout => None,
            UpperLayerEntry::Present(data) => Some(overlay_reader::kind(data)),
        };
        if inside.next().is_some() {
            return match inside.next() {
                // Existing directories are searched.
                None => !was_there || kind != Some(FileType::Directory),
                Some(first) => {
                    let first = std::ffi::OsStr::from_bytes(first);
                    !git_dirs::is_writable_git_name(first) || kind == Some(FileType::Symlink)
                }
            };
        }
        if was_there || kind != Some(FileType::Directory) {
            return false;
        }
        here.upper_dir(name).is_some_and(|folder| {
            let found = ProjectRepositories::find(&folder);
            git_dirs::has_repository_layout(&git_dirs::list_dir(&folder)) || !found.found.is_empty()
        })
    }

    /// True if a new or replaced directory contains something at a protected path, or anything but a directory on the way
    /// there: git would follow a link.
    fn contains_protected_path(&self, at: &TreePath, here: &OverlayDir, name: &[u8]) -> bool {
        let root = self.input.lower;
        let exists = |rest: TreePath| {
            let own = here.entry(name).ok()??;
            if own.kind() != FileType::Directory {
                return Some(true);
            }
            let mut folder = here.child(name, root).ok()?;
            for part in rest.parts() {
                let Some(entry) = folder.entry(part).ok()? else {
                    return Some(false);
                };
                if entry.kind() != FileType::Directory {
                    return Some(true);
                }
                folder = folder.child(part, root).ok()?;
            }
            Some(true)
        };
        let below = self
            .input
            .protected
            .iter()
            .filter(|path| path.is_within(at));
        below
            .map(|path| path.strip_ancestor(at))
            .any(|rest| exists(rest) == Some(true))
    }

    fn compare_permissions(&mut self, path: &TreePath, before: &Stat, after: &Stat) -> Result<()> {
        let bits = (permissions(before), permissions(after));
        if bits.0 == bits.1 {
            return Ok(());
        }
        let permitted = PermissionBitsChange {
            before: bits.0,
            after: bits.1,
        };
        self.found.mode_changes.push((path.clone(), permitted));
        self.found.changes.push(EntryChange {
            path: path.clone(),
            before: Some(entry_state_from_stat(path, before)?),
            after: Some(entry_state_from_stat(path, after)?),
        });
        Ok(())
    }

    /// Compares a path that is swapped in as one unit, and records it if anything in it differs.
    fn compare_unit(
        &mut self,
        at: &TreePath,
        here: &OverlayDir,
        name: &[u8],
        depth: usize,
    ) -> Result<()> {
        let failed = |error| unreadable(at, error);
        let (changes, touched) = (self.found.changes.len(), self.found.touched.len());
        let base = here.lower_only().map_err(failed)?;
        let before = base.entry(name).map_err(failed)?;
        let after = here.entry(name).map_err(failed)?;
        self.compare_entry(at, before.as_ref(), after.as_ref(), depth)?;
        let how = match (before.is_some(), after.is_some()) {
            (false, false) => None,
            (false, true) => Some(SwapMode::Create),
            (true, true) => Some(SwapMode::Exchange),
            (true, false) => Some(SwapMode::Remove),
        };
        match how.filter(|_| self.found.changes.len() > changes) {
            Some(how) => self.found.units.push(SwapUnit {
                path: at.clone(),
                how,
                touched: touched..self.found.touched.len(),
            }),
            None => self.found.touched.truncate(touched),
        }
        Ok(())
    }

    /// Compares two trees entry by entry.
    fn compare_entry(
        &mut self,
        at: &TreePath,
        before: Option<&OverlayEntry<'_>>,
        after: Option<&OverlayEntry<'_>>,
        depth: usize,
    ) -> Result<()> {
        self.check_limits(at, depth)?;
        let was = before.map(|item| entry_state(at, item)).transpose()?;
        let mut will_be = after.map(|item| entry_state(at, item)).transpose()?;
        if was.is_none() && will_be.is_none() {
            return Ok(());
        }
        if let (Some(after), Some(will_be)) = (after, &mut will_be)
            && will_be.kind == TreeEntryKind::File
        {
            will_be.content = self.new_content_hash(at, before, after)?;
        }
        let is_same = match (&was, &will_be) {
            (Some(was), Some(will_be)) => was == will_be,
            _ => false,
        };
        self.found.touched.push(TouchedPath {
            path: at.clone(),
            before: before.map(|item| StatFingerprint::from_stat(&item.data)),
            after: match (&will_be, is_same) {
                (_, true) => PlannedEntryState::Unchanged,
                (Some(thing), false) => PlannedEntryState::Replaced(thing.clone()),
                (None, false) => PlannedEntryState::Absent,
            },
        });
        let is_folder = |thing: &Option<EntryState>| {
            thing
                .as_ref()
                .is_some_and(|thing| thing.kind == TreeEntryKind::Directory)
        };
        let folders = (is_folder(&was), is_folder(&will_be));
        match is_same {
            true if was
                .as_ref()
                .is_some_and(|was| was.kind == TreeEntryKind::File) =>
            {
                self.count_rewritten(at)
            }
            true => {}
            false => self.found.changes.push(EntryChange {
                path: at.clone(),
                before: was,
                after: will_be,
            }),
        }
        let before = before.filter(|_| folders.0);
        let after = after.filter(|_| folders.1);
        self.compare_children(at, before, after, depth)
    }

    /// Compares the contents of two directories, or of one that replaces another entry.
    fn compare_children(
        &mut self,
        at: &TreePath,
        before: Option<&OverlayEntry<'_>>,
        after: Option<&OverlayEntry<'_>>,
        depth: usize,
    ) -> Result<()> {
        let failed = |error| unreadable(at, error);
        let entered = |item: Option<&OverlayEntry<'_>>| match item {
            Some(item) => item.open_dir(self.input.lower).map_err(failed),
            None => Ok(OverlayDir::empty()),
        };
        let (before, after) = (entered(before)?, entered(after)?);
        let mut names: BTreeSet<_> = before.names().map_err(failed)?.into_iter().collect();
        names.extend(after.names().map_err(failed)?);
        for name in &names {
            let was = before.entry(name).map_err(failed)?;
            let will_be = after.entry(name).map_err(failed)?;
            self.compare_entry(&at.join(name), was.as_ref(), will_be.as_ref(), depth + 1)?;
        }
        Ok(())
    }

    /// Returns the hash of a file's content if it changed.
    fn new_content_hash(
        &mut self,
        at: &TreePath,
        before: Option<&OverlayEntry<'_>>,
        after: &OverlayEntry<'_>,
    ) -> Result<Option<String>> {
        let failed = |source| PreviewError::Unreadable {
            path: at.display(),
            source,
        };
        let is_like = |before: &&OverlayEntry<'_>| {
            before.kind() == FileType::RegularFile && before.data.st_size == after.data.st_size
        };
        if let Some(before) = before.filter(is_like) {
            let before = before.open().map_err(|error| failed(error.into()))?;
            let after = self.open_written_file(at, after)?;
            if file_compare::has_same_bytes(before, after).map_err(failed)? {
                return Ok(None);
            }
        }
        let file = self.open_written_file(at, after)?;
        file_compare::hash(file).map(Some).map_err(failed)
    }

    /// Opens a file that the command wrote.
    fn open_written_file(&mut self, at: &TreePath, item: &OverlayEntry<'_>) -> Result<File> {
        self.bytes += item.data.st_size.unsigned_abs();
        self.input.bounds.check_bytes(self.bytes)?;
        let file = item.open().map_err(|error| unreadable(at, error))?;
        if !overlay_reader::is_metacopy(&file).map_err(|error| unreadable(at, error))? {
            Ok(file)
        } else {
            Err(PreviewError::UnsupportedEntry {
                path: at.display(),
                what: "metadata-only copies",
            })
        }
    }

    fn count_rewritten(&mut self, at: &TreePath) {
        let folder = at.split().map(|(folder, _)| folder).unwrap_or_default();
        *self.rewritten.entry(folder).or_default() += 1;
    }

    /// Counts an entry and enforces the limits against unbounded trees.
    fn check_limits(&mut self, at: &TreePath, depth: usize) -> Result<()> {
        self.entries += 1;
        self.input.bounds.check_depth(at, depth)?;
        self.input.bounds.check_entries(self.entries)
    }
}

/// Returns the compared state of an entry.
fn entry_state(at: &TreePath, item: &OverlayEntry<'_>) -> Result<EntryState> {
    let mut thing = entry_state_from_stat(at, &item.data)?;
    if thing.kind == TreeEntryKind::Link {
        let target = item.target().map_err(|error| unreadable(at, error))?;
        thing.target = Some(TreePath::from_bytes(&target));
    }
    Ok(thing)
}

fn entry_state_from_stat(at: &TreePath, data: &Stat) -> Result<EntryState> {
    let kind = TreeEntryKind::from_stat(data).ok_or_else(|| PreviewError::UnsupportedEntry {
        path: at.display(),
        what: "device files",
    })?;
    Ok(EntryState {
        kind,
        mode: permissions(data),
        size: match kind {
            TreeEntryKind::File => data.st_size.unsigned_abs(),
            _ => 0,
        },
        target: None,
        content: None,
    })
}
