//! Splits units into smaller ones: of a directory that was mostly rewritten unchanged, only changed entries are copied.
//!
//! A recreated directory could be exchanged as a whole. But if a reinstall repairs three of three thousand files, only
//! these three have to be copied.

use std::ops::Range;

use super::change_set::{
    ChangeSet, PermissionBitsChange, PlannedEntryState, SwapMode, SwapUnit, TouchedPath,
    TreeEntryKind,
};
use super::tree_path::TreePath;

/// Returns the same changes with the smallest number of copies.
pub(super) fn minimize_units(changes: ChangeSet) -> ChangeSet {
    let ChangeSet {
        units,
        touched,
        mode_changes: permitted,
        ..
    } = &changes;
    let mut refined = UnitSplitter {
        touched,
        units: Vec::new(),
        mode_changes: Vec::new(),
    };
    for unit in units {
        refined.keep_or_split(unit.touched.clone());
    }
    let permitted: Vec<_> = permitted
        .iter()
        .cloned()
        .chain(refined.mode_changes)
        .collect();
    let (units, touched) = filter_units(refined.units, touched, &permitted);
    ChangeSet {
        units,
        touched,
        mode_changes: permitted,
        ..changes
    }
}

/// A search for smaller units.
struct UnitSplitter<'a> {
    touched: &'a [TouchedPath],
    units: Vec<SwapUnit>,
    mode_changes: Vec<(TreePath, PermissionBitsChange)>,
}

impl UnitSplitter<'_> {
    /// Keeps a changed entry as one unit or splits it.
    fn keep_or_split(&mut self, range: Range<usize>) {
        let Some((top, inner)) = self.touched[range.clone()].split_first() else {
            return;
        };
        let is_same = |touched: &&TouchedPath| touched.after == PlannedEntryState::Unchanged;
        let same = inner.iter().filter(is_same).count();
        let stays = top.is_dir_before() && top.is_dir_after();
        if !stays || same < inner.len() - same {
            let how = match (&top.before, &top.after) {
                (None, _) => SwapMode::Create,
                (Some(_), PlannedEntryState::Absent) => SwapMode::Remove,
                (Some(_), _) => SwapMode::Exchange,
            };
            self.units.push(SwapUnit {
                path: top.path.clone(),
                how,
                touched: range,
            });
            return;
        }
        self.mode_changes.extend(top.mode_change());
        let mut at = range.start + 1;
        while at < range.end {
            let end = self.end_of_subtree(at, range.end);
            let differs = self.touched[at..end].iter().any(|one| !is_same(&one));
            if differs {
                self.keep_or_split(at..end);
            }
            at = end;
        }
    }

    /// Returns the end of an entry's subtree.
    fn end_of_subtree(&self, at: usize, last: usize) -> usize {
        let path = &self.touched[at].path;
        let rest = &self.touched[at..last];
        at + rest
            .iter()
            .take_while(|one| one.path.is_within(path))
            .count()
    }
}

impl TouchedPath {
    fn is_dir_before(&self) -> bool {
        self.before.is_some_and(|before| before.is_dir())
    }

    fn is_dir_after(&self) -> bool {
        match &self.after {
            PlannedEntryState::Unchanged => self.is_dir_before(),
            PlannedEntryState::Replaced(thing) => thing.kind == TreeEntryKind::Directory,
            PlannedEntryState::Absent | PlannedEntryState::ModeChanged(_) => false,
        }
    }

    /// Returns the permission change of a directory that stays.
    fn mode_change(&self) -> Option<(TreePath, PermissionBitsChange)> {
        match (&self.before, &self.after) {
            (Some(before), PlannedEntryState::Replaced(thing)) => {
                let permitted = PermissionBitsChange {
                    before: before.permissions(),
                    after: thing.mode,
                };
                Some((self.path.clone(), permitted))
            }
            _ => None,
        }
    }
}

/// Returns the units with only their touched paths, and the directories whose permissions change.
fn filter_units(
    units: Vec<SwapUnit>,
    touched: &[TouchedPath],
    permitted: &[(TreePath, PermissionBitsChange)],
) -> (Vec<SwapUnit>, Vec<TouchedPath>) {
    let folders = permitted.iter().map(|(path, permitted)| TouchedPath {
        path: path.clone(),
        // Its times change with the entries put into it.
        before: None,
        after: PlannedEntryState::ModeChanged(*permitted),
    });
    let mut kept: Vec<_> = folders.collect();
    let mut moved = Vec::with_capacity(units.len());
    for unit in units {
        let from = kept.len();
        kept.extend_from_slice(&touched[unit.touched.clone()]);
        moved.push(SwapUnit {
            touched: from..kept.len(),
            ..unit
        });
    }
    (moved, kept)
}
