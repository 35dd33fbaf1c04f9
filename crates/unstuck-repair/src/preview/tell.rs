//! Turns what differs into what a person is shown.

use std::collections::BTreeSet;
use std::path::Path;

use unstuck_core::Timestamp;
use unstuck_core::guard::{show, show_command};

use super::change::{Changes, Touched};
use super::compare::{Compared, unreadable};
use super::error::PreviewError;
use super::path::{TreePath, shown_line};
use super::report::{Counts, Ran, Report, Row};
use super::rows::{self, Line};
use super::texts::Texts;

/// How many paths are named that changed meanwhile.
const NAMED: usize = 5;

/// What is told beside the changes.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub(super) project: &'a Path,
    pub(super) made_at: Timestamp,
    pub(super) began: i128,
    pub(super) ran: Ran,
}

/// What a person is shown.
pub(super) fn report(
    compared: &Compared<'_>,
    changes: &Changes,
    told: Told<'_>,
) -> Result<Report, PreviewError> {
    let mut counts = Counts::default();
    for change in &changes.changes {
        counts += rows::counts(change);
    }
    let (lines, more_rows) = rows::lines(changes);
    let mut texts = Texts::default();
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        rows.push(with_text(line, compared, changes, &mut texts)?);
    }
    Ok(Report {
        id: String::new(),
        project: told.project.to_owned(),
        made_at: told.made_at,
        ran: neutral(told.ran),
        counts,
        same: changes.rewritten.iter().map(|folder| folder.files).sum(),
        same_in: same_in(changes),
        rows,
        more_rows,
        texts: texts.texts,
        more_texts: texts.more,
        refused: changes.refused.iter().map(TreePath::shown).collect(),
        unsettled: unsettled(changes, told.began),
    })
}

/// A row, with what is to be said about a single change.
fn with_text(
    line: Line,
    compared: &Compared<'_>,
    changes: &Changes,
    texts: &mut Texts,
) -> Result<Row, PreviewError> {
    let mut row = line.row;
    let change = line.change.and_then(|index| changes.changes.get(index));
    if let Some(change) = change {
        let counted = texts
            .take_in(change, compared.upper, compared.lower)
            .map_err(|error| unreadable(&change.path, error))?;
        row.note = rows::note(change, counted);
    }
    Ok(row)
}

/// The folders in the root of the project in which files were written again as they were.
fn same_in(changes: &Changes) -> Vec<String> {
    let folders = changes.rewritten.iter();
    let tops = folders.map(|one| one.folder.parts().next().unwrap_or(b".").to_vec());
    let tops: BTreeSet<_> = tops.collect();
    let tops = tops.iter().map(|name| TreePath::from_bytes(name).shown());
    tops.collect()
}

/// What is in the way of applying it: what changed since the command began.
fn unsettled(changes: &Changes, began: i128) -> Vec<String> {
    let is_newer = |touched: &&Touched| {
        let before = touched.before.as_ref();
        before.is_some_and(|before| before.changed > began)
    };
    let newer = changes.touched.iter().filter(is_newer);
    newer.take(NAMED).map(|one| one.path.shown()).collect()
}

/// What ran, fit to be shown.
fn neutral(ran: Ran) -> Ran {
    Ran {
        command: show_command(&ran.command),
        working_dir: show(&ran.working_dir),
        discarded: ran.discarded.iter().map(|path| show(path)).collect(),
        output: ran.output.iter().map(|line| shown_line(line)).collect(),
        ..ran
    }
}
