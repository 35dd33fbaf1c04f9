//! Text diffs of small files.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Result;
use similar::{ChangeTag, TextDiff};

use super::change_set::{EntryChange, TreeEntryKind};
use super::nofollow_access;
use super::overlay_reader::OverlayDir;
use super::report::FileTextDiff;
use super::tree_path::{TreePath, display_line};

/// Maximum file size for a text diff.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Maximum lines per file and in total.
const MAX_LINES_PER_FILE: usize = 40;
const MAX_LINES: usize = 160;
/// Lines of context around a change.
const CONTEXT_LINES: usize = 3;
/// Time limit, after which the diff may be longer than necessary.
const DIFF_TIMEOUT: Duration = Duration::from_millis(300);

/// The text diffs collected so far.
#[derive(Debug, Default)]
pub(super) struct TextDiffs {
    pub(super) diffs: Vec<FileTextDiff>,
    /// Number of diffs omitted for lack of lines.
    pub(super) omitted: u64,
    shown: usize,
}

impl TextDiffs {
    /// Adds a change; returns its numbers of added and removed lines if it is a text change.
    pub(super) fn add_change(
        &mut self,
        change: &EntryChange,
        upper: &OwnedFd,
        lower: &OwnedFd,
    ) -> Result<Option<(usize, usize)>> {
        let Some((before, after)) = texts_before_and_after(change, upper, lower)? else {
            return Ok(None);
        };
        let mut configured = TextDiff::configure();
        let difference = configured.timeout(DIFF_TIMEOUT).diff_lines(&before, &after);
        let count = |tag| {
            let all = difference.iter_all_changes();
            all.filter(|line| line.tag() == tag).count()
        };
        let counted = (count(ChangeTag::Insert), count(ChangeTag::Delete));
        let mut lines = Vec::new();
        for group in difference.grouped_ops(CONTEXT_LINES) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else {
                continue;
            };
            let (old, new) = (first.old_range().start, first.new_range().start);
            let (old_end, new_end) = (last.old_range().end, last.new_range().end);
            lines.push(format!(
                "@@ -{},{} +{},{} @@",
                old + 1,
                old_end - old,
                new + 1,
                new_end - new
            ));
            let changes = group.iter().flat_map(|op| difference.iter_changes(op));
            lines.extend(changes.map(|line| diff_line(line.tag(), line.value())));
        }
        self.add_diff(&change.path, lines);
        Ok(Some(counted))
    }

    fn add_diff(&mut self, path: &TreePath, mut lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        let room = MAX_LINES_PER_FILE.min(MAX_LINES - self.shown);
        if room == 0 {
            self.omitted += 1;
            return;
        }
        let more = lines.len().saturating_sub(room);
        lines.truncate(room);
        self.shown += lines.len();
        self.diffs.push(FileTextDiff {
            path: path.display(),
            lines,
            more_lines: more as u64,
        });
    }
}

fn diff_line(tag: ChangeTag, text: &str) -> String {
    let sign = match tag {
        ChangeTag::Insert => '+',
        ChangeTag::Delete => '-',
        ChangeTag::Equal => ' ',
    };
    format!(
        "{sign}{}",
        display_line(text.trim_end_matches(['\n', '\r']))
    )
}

/// Returns the texts before and after a change of a small text file.
fn texts_before_and_after(
    change: &EntryChange,
    upper: &OwnedFd,
    lower: &OwnedFd,
) -> Result<Option<(String, String)>> {
    let Some(after) = &change.after else {
        return Ok(None);
    };
    let is_new_text = after.kind == TreeEntryKind::File && after.content.is_some();
    if !is_new_text || after.size > MAX_FILE_BYTES {
        return Ok(None);
    }
    let new = OverlayDir::merged(
        nofollow_access::open_dir(upper, b".")?,
        nofollow_access::open_dir(lower, b".")?,
    );
    let old = new.lower_only()?;
    let Some(new) = read_text_at(new, lower, &change.path)? else {
        return Ok(None);
    };
    let old = match &change.before {
        None => Some(String::new()),
        Some(before) if before.kind == TreeEntryKind::File && before.size <= MAX_FILE_BYTES => {
            read_text_at(old, lower, &change.path)?
        }
        Some(_) => None,
    };
    Ok(old.map(|old| (old, new)))
}

fn read_text_at(layers: OverlayDir, lower: &OwnedFd, path: &TreePath) -> Result<Option<String>> {
    let Some((folder, name)) = path.split() else {
        return Ok(None);
    };
    let layers = layers.descend(&folder, lower)?;
    let item = layers.entry(name)?;
    let file = item.map(|item| item.open()).transpose()?;
    Ok(file.and_then(read_text))
}

/// Returns the content of a file if it is text.
fn read_text(file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}
