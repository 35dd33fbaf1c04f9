//! Builds the report of a preview from its changes.

use std::collections::BTreeSet;
use std::path::Path;

use unstuck_core::Timestamp;
use unstuck_core::command_policy::{sanitize, sanitize_command};

use super::change_set::{ChangeSet, TouchedPath};
use super::compare::{CompareInput, unreadable};
use super::error::PreviewError;
use super::folded_report_rows::{self, ReportRowDraft};
use super::report::{FileChangeCounts, PreviewCommandExecution, PreviewReport, PreviewReportRow};
use super::text_diffs::TextDiffs;
use super::tree_path::{TreePath, display_line};

/// Maximum number of paths reported as changed during the run.
const MAX_NAMED_PATHS: usize = 5;

/// The input of a report besides the changes.
#[derive(Debug)]
pub(super) struct ReportInput<'a> {
    pub(super) project: &'a Path,
    pub(super) made_at: Timestamp,
    pub(super) start_time: i128,
    pub(super) ran: PreviewCommandExecution,
}

/// Builds the report.
pub(super) fn build_report(
    compared: &CompareInput<'_>,
    changes: &ChangeSet,
    told: ReportInput<'_>,
) -> Result<PreviewReport, PreviewError> {
    let mut counts = FileChangeCounts::default();
    for change in &changes.changes {
        counts += folded_report_rows::change_counts(change);
    }
    let (lines, more_rows) = folded_report_rows::report_rows(changes);
    let mut texts = TextDiffs::default();
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        rows.push(row_with_text_diff(line, compared, changes, &mut texts)?);
    }
    Ok(PreviewReport {
        id: String::new(),
        project: told.project.to_owned(),
        made_at: told.made_at,
        execution: sanitize_executed(told.ran),
        counts,
        rewritten_unchanged: changes.rewritten.iter().map(|folder| folder.files).sum(),
        rewritten_in: dirs_with_rewritten_files(changes),
        rows,
        more_rows,
        texts: texts.diffs,
        more_texts: texts.omitted,
        protected: changes.protected.iter().map(TreePath::display).collect(),
        changed_during_run: changed_since(changes, told.start_time),
    })
}

/// Builds a row, with a remark if it is about a single change.
fn row_with_text_diff(
    line: ReportRowDraft,
    compared: &CompareInput<'_>,
    changes: &ChangeSet,
    texts: &mut TextDiffs,
) -> Result<PreviewReportRow, PreviewError> {
    let mut row = line.row;
    let change = line.change.and_then(|index| changes.changes.get(index));
    if let Some(change) = change {
        let counted = texts
            .add_change(change, compared.upper, compared.lower)
            .map_err(|error| unreadable(&change.path, error))?;
        row.note = folded_report_rows::change_note(change, counted);
    }
    Ok(row)
}

/// Returns the top-level directories in which files were rewritten unchanged.
fn dirs_with_rewritten_files(changes: &ChangeSet) -> Vec<String> {
    let folders = changes.rewritten.iter();
    let tops = folders.map(|one| one.folder.parts().next().unwrap_or(b".").to_vec());
    let tops: BTreeSet<_> = tops.collect();
    let tops = tops.iter().map(|name| TreePath::from_bytes(name).display());
    tops.collect()
}

/// Returns the paths that changed since the start of the command and prevent applying.
fn changed_since(changes: &ChangeSet, began: i128) -> Vec<String> {
    let is_newer = |touched: &&TouchedPath| {
        let before = touched.before.as_ref();
        before.is_some_and(|before| before.changed > began)
    };
    let newer = changes.touched.iter().filter(is_newer);
    newer
        .take(MAX_NAMED_PATHS)
        .map(|one| one.path.display())
        .collect()
}

/// Sanitizes an executed command for display.
fn sanitize_executed(ran: PreviewCommandExecution) -> PreviewCommandExecution {
    PreviewCommandExecution {
        command: sanitize_command(&ran.command),
        working_dir: sanitize(&ran.working_dir),
        discarded_writes: ran
            .discarded_writes
            .iter()
            .map(|path| sanitize(path))
            .collect(),
        output: ran.output.iter().map(|line| display_line(line)).collect(),
        ..ran
    }
}
