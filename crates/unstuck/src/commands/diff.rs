//! `unstuck diff`: shows what an attempt changed in the work tree.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;
use unstuck_core::views::{AttemptOutcome, AttemptView, RunTimeline};
use unstuck_run::worktree::{ChangedFile, DiffAudience, SnapshotStore, WorktreeError};

use crate::command_context::CommandContext;
use crate::error_report::{error_with_hint, refusal};
use crate::output::{BOLD, DIM, GREEN, Output, RED};
use crate::redacted_stderr::RedactedStderr;
use crate::run_history::RunHistory;
use crate::run_ref::RunRef;
use crate::run_supervision::state_dir;
use crate::sanitized_text::printable;
use crate::{async_runtime, clock, completion_candidates};

/// Show what an attempt changed in the work tree
///
/// Without an attempt, shows the changes of the whole run. If piped, prints a patch for `git apply`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck diff                 (all changes of the newest run)
  unstuck diff k3v9/2          (changes of attempt 2)
  unstuck diff k3v9/tester     (changes of the role `tester`)
  unstuck diff k3v9/2 --stat
  unstuck diff k3v9/2 | git apply --reverse")]
pub(crate) struct DiffArgs {
    /// Run, optionally followed by /ROLE and /ATTEMPT [default: the newest run]
    #[arg(
        value_name = "RUN[/ROLE][/N]",
        value_parser = NonEmptyStringValueParser::new(),
        add = completion_candidates::runs_and_roles()
    )]
    run: Option<String>,

    /// Only list the files with the number of changed lines
    #[arg(long)]
    stat: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Two trees to compare and their labels.
struct Comparison {
    id: String,
    subject: String,
    from: String,
    to: ComparisonEnd,
}

/// The newer side of a comparison.
enum ComparisonEnd {
    Tree(String),
    /// The current work tree, as no end snapshot exists yet.
    WorkTree(&'static str),
}

pub(crate) fn run(args: &DiffArgs, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    let named = RunRef::parse(args.run.as_deref())?;
    let (timeline, supervised) = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        history
            .timeline_and_supervision(named.run_prefix, clock::now().at)
            .await
    })?;
    let attempts = named.find_attempts(&timeline)?;
    let project = Path::new(&timeline.summary.project);
    let state = state_dir(session.store);
    let snapshots =
        SnapshotStore::open(project, &timeline.summary.id, &state).map_err(with_hint)?;
    let compared = comparison(&timeline, &attempts, named, supervised)?;
    let (to, note) = match &compared.to {
        ComparisonEnd::Tree(tree) => (tree.clone(), None),
        ComparisonEnd::WorkTree(note) => (snapshots.current().map_err(with_hint)?.tree, Some(note)),
    };
    if let Some(note) = note {
        writeln!(
            RedactedStderr::auto(),
            "{DIM}{}: {note}{DIM:#}",
            compared.subject
        )?;
    }
    let shown = TreeDiff {
        snapshots,
        compared,
        to,
    };
    match (args.json, args.stat) {
        (true, _) => shown.print_json(args.stat, out),
        (_, true) => shown.print_stat(out),
        _ => shown.print_patch(out),
    }
}

/// Determines the trees before and after the selected attempts.
fn comparison(
    timeline: &RunTimeline,
    attempts: &[&AttemptView],
    named: RunRef<'_>,
    supervised: bool,
) -> Result<Comparison> {
    let whole = named.attempt.is_none() && named.role.is_none();
    let run = timeline.summary.id.short();
    let (Some(first), Some(last)) = (attempts.first(), attempts.last()) else {
        return Err(refusal(
            format!("run {run} has no attempts yet"),
            format!("`unstuck show {run}` shows its state"),
        ));
    };
    let subject = match (named.role, named.attempt) {
        (None, None) => format!("run {run}"),
        (Some(role), None) => format!("role {run}/{role}"),
        (None, Some(_)) => format!("attempt {run}/{}", last.index),
        (Some(role), Some(number)) => format!("attempt {run}/{role}/{number}"),
    };
    let missing = || {
        refusal(
            format!("no work tree snapshots of {subject}"),
            format!("`unstuck logs {run}` shows its output"),
        )
    };
    let (from, _) = trees_of(timeline, first).ok_or_else(missing)?;
    let (_, after) = trees_of(timeline, last).ok_or_else(missing)?;
    let to = match (after, last.outcome) {
        (Some(tree), _) => ComparisonEnd::Tree(tree),
        (None, AttemptOutcome::Running) if supervised => {
            ComparisonEnd::WorkTree("still running; comparing with the current work tree")
        }
        (None, AttemptOutcome::Running | AttemptOutcome::Interrupted) => {
            ComparisonEnd::WorkTree("interrupted; comparing with the current work tree")
        }
        (None, _) => return Err(missing()),
    };
    let id = if whole {
        timeline.summary.id.to_string()
    } else {
        last.id.clone()
    };
    Ok(Comparison {
        id,
        subject,
        from,
        to,
    })
}

/// Returns the trees before and after an attempt. If the end was not recorded, the start of the session's next attempt
/// is used.
fn trees_of(timeline: &RunTimeline, attempt: &AttemptView) -> Option<(String, Option<String>)> {
    let mut later = timeline.attempts.iter();
    let next =
        later.find(|other| other.session == attempt.session && other.number > attempt.number);
    let after = attempt.tree_after.clone();
    let after = after.or_else(|| next.and_then(|next| next.tree.clone()));
    Some((attempt.tree.clone()?, after))
}

/// The differences between two trees of a repository.
struct TreeDiff {
    snapshots: SnapshotStore,
    compared: Comparison,
    to: String,
}

impl TreeDiff {
    fn files(&self) -> Result<Vec<ChangedFile>> {
        let files = self.snapshots.changed_files(&self.compared.from, &self.to);
        files.map_err(|error| self.with_hint(error))
    }

    fn diff(&self, reader: DiffAudience) -> Result<Vec<u8>> {
        let diff = self.snapshots.diff(&self.compared.from, &self.to, reader);
        diff.map_err(|error| self.with_hint(error))
    }

    fn with_hint(&self, error: WorktreeError) -> anyhow::Error {
        match error {
            WorktreeError::Pruned { .. } => refusal(
                format!("snapshots of {} no longer exist", self.compared.subject),
                "they are deleted when the run is pruned, or by git garbage collection in a copy of the repository",
            ),
            other => with_hint(other),
        }
    }

    fn print_json(&self, only_stat: bool, out: &mut Output) -> Result<()> {
        let mut whole = json!({
            "id": self.compared.id,
            "root": self.snapshots.root(),
            "from": self.compared.from,
            "to": self.to,
            "to_is_work_tree": matches!(self.compared.to, ComparisonEnd::WorkTree(_)),
            "files": self.files()?,
        });
        if !only_stat {
            let diff = self.diff(DiffAudience::Program)?;
            whole["diff"] = String::from_utf8_lossy(&diff).into();
        }
        out.write_json(&whole)
    }

    fn print_stat(&self, out: &mut Output) -> Result<()> {
        let files = self.files()?;
        if files.is_empty() {
            return self.report_no_changes();
        }
        let width = files.iter().map(|file| file.path.chars().count()).max();
        let width = width.unwrap_or_default().min(80);
        for file in &files {
            let lines = match (file.added, file.removed) {
                (Some(added), Some(removed)) => {
                    format!("{GREEN}+{added}{GREEN:#} {RED}-{removed}{RED:#}")
                }
                _ => "binary".to_owned(),
            };
            writeln!(
                out,
                "{:<8}  {:<width$}  {lines}",
                file.change.name(),
                printable(&file.path)
            )?;
        }
        let sum =
            |lines: fn(&ChangedFile) -> Option<u64>| files.iter().filter_map(lines).sum::<u64>();
        let (added, removed) = (sum(|file| file.added), sum(|file| file.removed));
        let count = match files.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let lines = if added == 1 { "line" } else { "lines" };
        writeln!(
            out,
            "{DIM}{count} changed, {added} {lines} added, {removed} removed{DIM:#}"
        )?;
        Ok(())
    }

    fn print_patch(&self, out: &mut Output) -> Result<()> {
        if !out.is_terminal() {
            return match self.diff(DiffAudience::Program)?.as_slice() {
                [] => self.report_no_changes(),
                patch => Ok(out.write_raw(patch)?),
            };
        }
        let patch = self.diff(DiffAudience::Person)?;
        if patch.is_empty() {
            return self.report_no_changes();
        }
        print_colored_patch(&String::from_utf8_lossy(&patch), out)
    }

    fn report_no_changes(&self) -> Result<()> {
        let subject = &self.compared.subject;
        writeln!(
            RedactedStderr::auto(),
            "no differences: {subject} changed no files in the work tree"
        )?;
        Ok(())
    }
}

/// Prints a patch with colored lines; escape sequences in its content are removed.
fn print_colored_patch(patch: &str, out: &mut Output) -> Result<()> {
    let mut in_hunk = false;
    for line in patch.lines() {
        // Every line of a hunk has a prefix character, so this can only be the next file.
        in_hunk = in_hunk && !line.starts_with("diff --git ") || line.starts_with("@@ ");
        let style = match (in_hunk, line.as_bytes().first()) {
            (false, _) => BOLD,
            (_, Some(b'+')) => GREEN,
            (_, Some(b'-')) => RED,
            (_, Some(b'@' | b'\\')) => DIM,
            _ => anstyle::Style::new(),
        };
        writeln!(out, "{style}{}{style:#}", printable(line))?;
    }
    Ok(())
}

/// Adds a hint to a work tree error.
fn with_hint(error: WorktreeError) -> anyhow::Error {
    let (message, hint) = (error.to_string(), hint(&error));
    match hint {
        Some(hint) => refusal(message, hint),
        None => error_with_hint(message, "run `git status` in the project for details"),
    }
}

fn hint(error: &WorktreeError) -> Option<String> {
    let hint = match error {
        WorktreeError::GitNotFound => "install git; changes are recorded only with git".to_owned(),
        WorktreeError::NoRepository { .. } => {
            "run `git init`; changes are recorded only in a git repository".to_owned()
        }
        WorktreeError::UnsafeOwner { project } => format!(
            "if you trust it: git config --global --add safe.directory '{}'",
            project.display()
        ),
        WorktreeError::Locked { .. } => "retry when that program is done".to_owned(),
        WorktreeError::DiskFull => "free disk space and retry".to_owned(),
        WorktreeError::Denied { .. } => {
            "check the ownership and permissions of the project's files".to_owned()
        }
        _ => return None,
    };
    Some(hint)
}
