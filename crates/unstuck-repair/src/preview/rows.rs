//! Many changes in few lines: a folder that is new is one, and so is one in which too much differs.

use std::collections::BTreeMap;

use super::change::{Change, Changes, Kind, Thing};
use super::path::TreePath;
use super::report::{Counts, Row, What};

/// How many lines a person reads.
pub(super) const MOST: usize = 40;
/// How many changes in one folder are worth a line each, when there are too many lines.
const FEW: usize = 3;

/// A line, and what it is about.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) row: Row,
    /// The change that it is about, if that is only one.
    pub(super) change: Option<usize>,
    path: TreePath,
    bytes: u64,
    is_folder: bool,
}

/// The lines, and how many more there would be.
pub(super) fn lines(changes: &Changes) -> (Vec<Line>, u64) {
    let mut lines = one_each(&changes.changes);
    let deepest = lines.iter().map(|line| line.path.parts().count()).max();
    for depth in (1..deepest.unwrap_or_default()).rev() {
        if lines.len() <= MOST {
            break;
        }
        lines = folded(lines, depth);
    }
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    for line in &mut lines {
        line.finish();
    }
    (lines, more as u64)
}

/// One line for each change, but only one for a folder that comes or goes as a whole.
fn one_each(changes: &[Change]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut whole: Option<TreePath> = None;
    for (index, change) in changes.iter().enumerate() {
        let inside = whole
            .as_ref()
            .is_some_and(|whole| change.path.is_within(whole));
        match lines.last_mut().filter(|_| inside) {
            Some(line) => line.take_in(change),
            None => {
                whole = is_whole(change).then(|| change.path.clone());
                lines.push(Line::of(change, index));
            }
        }
    }
    lines
}

/// Whether all that follows below a change belongs to it.
fn is_whole(change: &Change) -> bool {
    let is_folder = |thing: &Option<Thing>| thing.as_ref().is_some_and(Thing::is_folder);
    is_folder(&change.before) != is_folder(&change.after)
}

/// Lines with one for all that lies in a folder at this depth, unless that is little.
fn folded(lines: Vec<Line>, depth: usize) -> Vec<Line> {
    let folder = |line: &Line| {
        let parts: Vec<_> = line.path.parts().collect();
        (parts.len() > depth).then(|| TreePath::from_bytes(&parts[..depth].join(&b'/')))
    };
    let mut sizes: BTreeMap<TreePath, usize> = BTreeMap::new();
    for line in &lines {
        if let Some(folder) = folder(line) {
            *sizes.entry(folder).or_default() += 1;
        }
    }
    let mut kept: Vec<Line> = Vec::new();
    for line in lines {
        let Some(folder) = folder(&line).filter(|folder| sizes[folder] > FEW) else {
            kept.push(line);
            continue;
        };
        match kept.last_mut().filter(|last| last.path == folder) {
            Some(last) => last.join(&line),
            None => kept.push(Line {
                path: folder,
                is_folder: true,
                change: None,
                ..line
            }),
        }
    }
    kept
}

impl Line {
    fn of(change: &Change, index: usize) -> Self {
        let mut line = Self {
            row: Row {
                what: what(change),
                path: String::new(),
                counts: Counts::default(),
                note: String::new(),
            },
            change: Some(index),
            path: change.path.clone(),
            bytes: 0,
            is_folder: change.kind() == Some(Kind::Folder),
        };
        line.take_in(change);
        line
    }

    /// Takes in a change that it is about.
    fn take_in(&mut self, change: &Change) {
        self.bytes += change.after.as_ref().map_or(0, |thing| thing.size);
        self.row.counts += counts(change);
    }

    /// Takes in another line of the same folder.
    fn join(&mut self, other: &Self) {
        if self.row.what != other.row.what {
            self.row.what = What::Mixed;
        }
        self.bytes += other.bytes;
        self.row.counts += other.row.counts;
    }

    fn finish(&mut self) {
        self.row.path = self.path.shown();
        if self.is_folder {
            self.row.path.push('/');
        }
        let files = self.row.counts.sum();
        if self.change.is_none() || self.is_folder && self.row.what != What::Change && files > 0 {
            self.change = None;
            self.row.note = self.summed_up(files);
        }
    }

    fn summed_up(&self, files: u64) -> String {
        let counts = &self.row.counts;
        let several = [
            (counts.added, "added"),
            (counts.changed, "changed"),
            (counts.deleted, "deleted"),
        ];
        let several: Vec<_> = several.iter().filter(|(count, _)| *count > 0).collect();
        match (several.as_slice(), self.row.what) {
            ([_], What::Add | What::Change) => {
                format!("{}, {}", files_of(files), size_of(self.bytes))
            }
            ([_], What::Delete) => files_of(files),
            (several, _) => {
                let parts = several
                    .iter()
                    .map(|(count, word)| format!("{} {word}", spaced(*count)));
                parts.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

fn what(change: &Change) -> What {
    match (&change.before, &change.after) {
        (None, _) => What::Add,
        (_, None) => What::Delete,
        _ => What::Change,
    }
}

/// How many files a change is; a folder is none, unless only its permissions change.
pub(super) fn counts(change: &Change) -> Counts {
    let mut counts = Counts::default();
    match (&change.before, &change.after) {
        (None, Some(thing)) if !thing.is_folder() => counts.added = 1,
        (Some(thing), None) if !thing.is_folder() => counts.deleted = 1,
        (Some(_), Some(_)) => counts.changed = 1,
        _ => {}
    }
    counts
}

/// What is to be said about one change, of which so many lines come and go.
pub(super) fn note(change: &Change, lines: Option<(usize, usize)>) -> String {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => difference(before, after, lines),
        (Some(thing), _) | (_, Some(thing)) => of_one(thing),
        (None, None) => String::new(),
    }
}

fn of_one(thing: &Thing) -> String {
    let what = match (&thing.kind, &thing.target) {
        (Kind::File, _) => size_of(thing.size),
        (Kind::Folder, _) => "empty folder".to_owned(),
        (Kind::Link, Some(target)) => return format!("link to {}", target.shown()),
        (Kind::Link, None) => return "link".to_owned(),
        (Kind::Pipe, _) => "named pipe".to_owned(),
    };
    // A program that runs as somebody else is never a small matter.
    match thing.mode & 0o6000 {
        0 => what,
        _ => format!("{what}, mode {:o}", thing.mode),
    }
}

fn difference(before: &Thing, after: &Thing, lines: Option<(usize, usize)>) -> String {
    if before.kind != after.kind {
        let (was, will_be) = (name(before.kind), name(after.kind));
        let target = after.target.as_ref();
        let target = target.map(|target| format!(" to {}", target.shown()));
        return format!("a {was} becomes a {will_be}{}", target.unwrap_or_default());
    }
    let mut parts = Vec::new();
    if let (Some(was), Some(will_be)) = (&before.target, &after.target) {
        parts.push(format!("link to {}, was {}", will_be.shown(), was.shown()));
    }
    match lines {
        Some((come, go)) => parts.push(format!("+{come} -{go}")),
        None if after.content.is_some() => {
            parts.push(format!(
                "{} → {}",
                size_of(before.size),
                size_of(after.size)
            ));
        }
        None => {}
    }
    if after.kind != Kind::Link && before.mode != after.mode {
        parts.push(format!("mode {:o} → {:o}", before.mode, after.mode));
    }
    parts.join(", ")
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Folder => "folder",
        Kind::Link => "link",
        Kind::Pipe => "named pipe",
    }
}

fn files_of(count: u64) -> String {
    match count {
        1 => "1 file".to_owned(),
        count => format!("{} files", spaced(count)),
    }
}

/// A number that can be read at a glance: `2 561`.
pub fn spaced(number: u64) -> String {
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

/// A size for people.
pub fn size_of(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
