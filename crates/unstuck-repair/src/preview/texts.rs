//! How the texts of small files would change.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Result;
use similar::{ChangeTag, TextDiff};

use super::change::{Change, Kind};
use super::handle;
use super::layers::Layers;
use super::path::{TreePath, shown_line};
use super::report::Text;

/// The largest file whose text is compared.
const LARGEST: u64 = 1024 * 1024;
/// How many lines are shown of one file, and of all together.
const LINES: usize = 40;
const ALL_LINES: usize = 160;
/// How many lines around a change are shown.
const AROUND: usize = 3;
/// After that a difference is shown that may be longer than it has to be.
const PATIENCE: Duration = Duration::from_millis(300);

/// The differences of texts that were found so far.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) texts: Vec<Text>,
    /// How many there are no lines left for.
    pub(super) more: u64,
    shown: usize,
}

impl Texts {
    /// Takes in a change; tells how many lines come and go if it is one of a text.
    pub(super) fn take_in(
        &mut self,
        change: &Change,
        upper: &OwnedFd,
        lower: &OwnedFd,
    ) -> Result<Option<(usize, usize)>> {
        let Some((before, after)) = both(change, upper, lower)? else {
            return Ok(None);
        };
        let mut configured = TextDiff::configure();
        let difference = configured.timeout(PATIENCE).diff_lines(&before, &after);
        let count = |tag| {
            let all = difference.iter_all_changes();
            all.filter(|line| line.tag() == tag).count()
        };
        let counted = (count(ChangeTag::Insert), count(ChangeTag::Delete));
        let mut lines = Vec::new();
        for group in difference.grouped_ops(AROUND) {
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
            lines.extend(changes.map(|line| signed(line.tag(), line.value())));
        }
        self.keep(&change.path, lines);
        Ok(Some(counted))
    }

    fn keep(&mut self, path: &TreePath, mut lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        let room = LINES.min(ALL_LINES - self.shown);
        if room == 0 {
            self.more += 1;
            return;
        }
        let more = lines.len().saturating_sub(room);
        lines.truncate(room);
        self.shown += lines.len();
        self.texts.push(Text {
            path: path.shown(),
            lines,
            more_lines: more as u64,
        });
    }
}

fn signed(tag: ChangeTag, text: &str) -> String {
    let sign = match tag {
        ChangeTag::Insert => '+',
        ChangeTag::Delete => '-',
        ChangeTag::Equal => ' ',
    };
    format!("{sign}{}", shown_line(text.trim_end_matches(['\n', '\r'])))
}

/// The texts before and after, if the change is one of a small text.
fn both(change: &Change, upper: &OwnedFd, lower: &OwnedFd) -> Result<Option<(String, String)>> {
    let Some(after) = &change.after else {
        return Ok(None);
    };
    let is_new_text = after.kind == Kind::File && after.content.is_some();
    if !is_new_text || after.size > LARGEST {
        return Ok(None);
    }
    let new = Layers::merged(handle::folder(upper, b".")?, handle::folder(lower, b".")?);
    let old = new.base()?;
    let Some(new) = text_at(new, lower, &change.path)? else {
        return Ok(None);
    };
    let old = match &change.before {
        None => Some(String::new()),
        Some(before) if before.kind == Kind::File && before.size <= LARGEST => {
            text_at(old, lower, &change.path)?
        }
        Some(_) => None,
    };
    Ok(old.map(|old| (old, new)))
}

fn text_at(layers: Layers, lower: &OwnedFd, path: &TreePath) -> Result<Option<String>> {
    let Some((folder, name)) = path.split() else {
        return Ok(None);
    };
    let layers = layers.at(&folder, lower)?;
    let item = layers.item(name)?;
    let file = item.map(|item| item.open()).transpose()?;
    Ok(file.and_then(text_of))
}

/// What a file holds, if it is a text.
fn text_of(file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}
