//! Folds many changes into few rows: one for a new directory, and one for a directory with too many changes.

use std::collections::BTreeMap;

use super::change_set::{ChangeSet, EntryChange, EntryState, TreeEntryKind};
use super::report::{FileChangeCounts, PreviewFileChangeKind, PreviewReportRow};
use super::tree_path::TreePath;

/// Maximum number of rows.
pub(super) const MAX_ROWS: usize = 40;
/// Minimum number of changes in a directory to fold when there are too many rows.
const MIN_FOLDED_CHANGES: usize = 3;

/// A row being built.
#[derive(Debug, Clone)]
pub(super) struct ReportRowDraft {
    pub(super) row: PreviewReportRow,
    /// Index of the change, if it is only one.
    pub(super) change: Option<usize>,
    path: TreePath,
    bytes: u64,
    is_folder: bool,
}

/// Returns the rows, and the number of omitted ones.
pub(super) fn report_rows(changes: &ChangeSet) -> (Vec<ReportRowDraft>, u64) {
    let mut lines = row_per_change(&changes.changes);
    let deepest = lines.iter().map(|line| line.path.parts().count()).max();
    for depth in (1..deepest.unwrap_or_default()).rev() {
        if lines.len() <= MAX_ROWS {
            break;
        }
        lines = fold_dirs(lines, depth);
    }
    let more = lines.len().saturating_sub(MAX_ROWS);
    lines.truncate(MAX_ROWS);
    for line in &mut lines {
        line.finish();
    }
    (lines, more as u64)
}

/// Returns one row per change, but only one for a directory that is added or deleted as a whole.
fn row_per_change(changes: &[EntryChange]) -> Vec<ReportRowDraft> {
    let mut lines: Vec<ReportRowDraft> = Vec::new();
    let mut whole: Option<TreePath> = None;
    for (index, change) in changes.iter().enumerate() {
        let inside = whole
            .as_ref()
            .is_some_and(|whole| change.path.is_within(whole));
        match lines.last_mut().filter(|_| inside) {
            Some(line) => line.add_change(change),
            None => {
                whole = is_whole_dir_change(change).then(|| change.path.clone());
                lines.push(ReportRowDraft::from_change(change, index));
            }
        }
    }
    lines
}

/// True if all changes below this one are part of it.
fn is_whole_dir_change(change: &EntryChange) -> bool {
    let is_folder = |thing: &Option<EntryState>| thing.as_ref().is_some_and(EntryState::is_dir);
    is_folder(&change.before) != is_folder(&change.after)
}

/// Folds the rows of each directory at this depth into one, unless they are few.
fn fold_dirs(lines: Vec<ReportRowDraft>, depth: usize) -> Vec<ReportRowDraft> {
    let folder = |line: &ReportRowDraft| {
        let parts: Vec<_> = line.path.parts().collect();
        (parts.len() > depth).then(|| TreePath::from_bytes(&parts[..depth].join(&b'/')))
    };
    let mut sizes: BTreeMap<TreePath, usize> = BTreeMap::new();
    for line in &lines {
        if let Some(folder) = folder(line) {
            *sizes.entry(folder).or_default() += 1;
        }
    }
    let mut kept: Vec<ReportRowDraft> = Vec::new();
    for line in lines {
        let Some(folder) = folder(&line).filter(|folder| sizes[folder] > MIN_FOLDED_CHANGES) else {
            kept.push(line);
            continue;
        };
        match kept.last_mut().filter(|last| last.path == folder) {
            Some(last) => last.merge(&line),
            None => kept.push(ReportRowDraft {
                path: folder,
                is_folder: true,
                change: None,
                ..line
            }),
        }
    }
    kept
}

impl ReportRowDraft {
    fn from_change(change: &EntryChange, index: usize) -> Self {
        let mut line = Self {
            row: PreviewReportRow {
                change: row_change(change),
                path: String::new(),
                counts: FileChangeCounts::default(),
                note: String::new(),
            },
            change: Some(index),
            path: change.path.clone(),
            bytes: 0,
            is_folder: change.kind() == Some(TreeEntryKind::Directory),
        };
        line.add_change(change);
        line
    }

    /// Adds a change to the row.
    fn add_change(&mut self, change: &EntryChange) {
        self.bytes += change.after.as_ref().map_or(0, |thing| thing.size);
        self.row.counts += change_counts(change);
    }

    /// Merges another row of the same directory.
    fn merge(&mut self, other: &Self) {
        if self.row.change != other.row.change {
            self.row.change = PreviewFileChangeKind::Mixed;
        }
        self.bytes += other.bytes;
        self.row.counts += other.row.counts;
    }

    fn finish(&mut self) {
        self.row.path = self.path.display();
        if self.is_folder {
            self.row.path.push('/');
        }
        let files = self.row.counts.sum();
        if self.change.is_none()
            || self.is_folder && self.row.change != PreviewFileChangeKind::Change && files > 0
        {
            self.change = None;
            self.row.note = self.summary(files);
        }
    }

    fn summary(&self, files: u64) -> String {
        let counts = &self.row.counts;
        let several = [
            (counts.added, "added"),
            (counts.changed, "changed"),
            (counts.deleted, "deleted"),
        ];
        let several: Vec<_> = several.iter().filter(|(count, _)| *count > 0).collect();
        match (several.as_slice(), self.row.change) {
            ([_], PreviewFileChangeKind::Add | PreviewFileChangeKind::Change) => {
                format!("{}, {}", file_count(files), display_size(self.bytes))
            }
            ([_], PreviewFileChangeKind::Delete) => file_count(files),
            (several, _) => {
                let parts = several
                    .iter()
                    .map(|(count, word)| format!("{} {word}", grouped_number(*count)));
                parts.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

fn row_change(change: &EntryChange) -> PreviewFileChangeKind {
    match (&change.before, &change.after) {
        (None, _) => PreviewFileChangeKind::Add,
        (_, None) => PreviewFileChangeKind::Delete,
        _ => PreviewFileChangeKind::Change,
    }
}

/// Returns the file counts of a change; a directory counts only if its permissions change.
pub(super) fn change_counts(change: &EntryChange) -> FileChangeCounts {
    let mut counts = FileChangeCounts::default();
    match (&change.before, &change.after) {
        (None, Some(thing)) if !thing.is_dir() => counts.added = 1,
        (Some(thing), None) if !thing.is_dir() => counts.deleted = 1,
        (Some(_), Some(_)) => counts.changed = 1,
        _ => {}
    }
    counts
}

/// Returns the remark for a change, given its numbers of added and removed lines.
pub(super) fn change_note(change: &EntryChange, lines: Option<(usize, usize)>) -> String {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => difference_note(before, after, lines),
        (Some(thing), _) | (_, Some(thing)) => entry_note(thing),
        (None, None) => String::new(),
    }
}

fn entry_note(thing: &EntryState) -> String {
    let what = match (&thing.kind, &thing.target) {
        (TreeEntryKind::File, _) => display_size(thing.size),
        (TreeEntryKind::Directory, _) => "empty directory".to_owned(),
        (TreeEntryKind::Link, Some(target)) => return format!("link to {}", target.display()),
        (TreeEntryKind::Link, None) => return "link".to_owned(),
        (TreeEntryKind::Pipe, _) => "named pipe".to_owned(),
    };
    // Set-user-ID and set-group-ID bits are always shown.
    match thing.mode & 0o6000 {
        0 => what,
        _ => format!("{what}, mode {:o}", thing.mode),
    }
}

fn difference_note(
    before: &EntryState,
    after: &EntryState,
    lines: Option<(usize, usize)>,
) -> String {
    if before.kind != after.kind {
        let (was, will_be) = (kind_name(before.kind), kind_name(after.kind));
        let target = after.target.as_ref();
        let target = target.map(|target| format!(" to {}", target.display()));
        return format!("a {was} becomes a {will_be}{}", target.unwrap_or_default());
    }
    let mut parts = Vec::new();
    if let (Some(was), Some(will_be)) = (&before.target, &after.target) {
        parts.push(format!(
            "link to {}, was {}",
            will_be.display(),
            was.display()
        ));
    }
    match lines {
        Some((come, go)) => parts.push(format!("+{come} -{go}")),
        None if after.content.is_some() => {
            parts.push(format!(
                "{} → {}",
                display_size(before.size),
                display_size(after.size)
            ));
        }
        None => {}
    }
    if after.kind != TreeEntryKind::Link && before.mode != after.mode {
        parts.push(format!("mode {:o} → {:o}", before.mode, after.mode));
    }
    parts.join(", ")
}

fn kind_name(kind: TreeEntryKind) -> &'static str {
    match kind {
        TreeEntryKind::File => "file",
        TreeEntryKind::Directory => "directory",
        TreeEntryKind::Link => "link",
        TreeEntryKind::Pipe => "named pipe",
    }
}

fn file_count(count: u64) -> String {
    match count {
        1 => "1 file".to_owned(),
        count => format!("{} files", grouped_number(count)),
    }
}

/// Formats a number with digit groups: `2 561`.
pub fn grouped_number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Formats a size for display.
pub fn display_size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
