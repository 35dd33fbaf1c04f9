//! Prints previews.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::duration::HumanDuration;
use unstuck_core::recovery_plan::shell_quote;
use unstuck_core::repair::needs_network;
use unstuck_repair::preview::{
    FileChangeCounts, PreviewFileChangeKind, PreviewReport, PreviewReportRow, grouped_number,
};

use super::PreviewOutcome;
use crate::clock::format_age;
use crate::command_context::CommandContext;
use crate::output::{BOLD, DIM, GREEN, Output, RED, YELLOW};
use crate::project_lookup::abbreviate_home;
use crate::sanitized_text::truncate;

/// Widest path for which notes are aligned in a column.
const MAX_PATH_WIDTH: usize = 60;

/// The JSON result of a preview.
#[derive(Serialize)]
struct PreviewJson<'a> {
    #[serde(flatten)]
    report: &'a PreviewReport,
    /// Final state: kept, dropped or applied.
    fate: &'static str,
    /// Files that could not be removed after applying.
    leftovers: &'a [String],
}

pub(super) fn json(report: &PreviewReport, fate: &PreviewOutcome, out: &mut Output) -> Result<()> {
    let left: &[String] = match fate {
        PreviewOutcome::Applied(applied) => &applied.leftovers,
        PreviewOutcome::Kept | PreviewOutcome::Dropped => &[],
    };
    let told = PreviewJson {
        report,
        fate: match fate {
            PreviewOutcome::Kept => "kept",
            PreviewOutcome::Dropped => "dropped",
            PreviewOutcome::Applied(_) => "applied",
        },
        leftovers: left,
    };
    out.write_json(&told)
}

/// Prints the command, its exit status and its changes.
pub(super) fn report(report: &PreviewReport, out: &mut Output) -> Result<()> {
    head(report, out)?;
    changes(report, out)?;
    print_text_diffs(report, out)?;
    output(report, out)?;
    print_limitations(report, out)
}

fn head(report: &PreviewReport, out: &mut Output) -> Result<()> {
    let ran = &report.execution;
    let mut place = abbreviate_home(&report.project.display().to_string());
    if !ran.working_dir.is_empty() && ran.working_dir != "." {
        place = format!("{place}/{}", ran.working_dir);
    }
    let (style, end) = match (ran.timed_out, ran.exit_code) {
        (true, _) => (RED, "timed out".to_owned()),
        (false, 0) => (GREEN, "exit 0".to_owned()),
        (false, code) => (RED, format!("exit {code}")),
    };
    let time = HumanDuration(ran.duration);
    let network = if ran.network {
        "with network"
    } else {
        "without network"
    };
    writeln!(out, "{BOLD}{}{BOLD:#}", ran.command)?;
    writeln!(
        out,
        "{DIM}on an overlay of {place} ·{DIM:#} {style}{end}{style:#} {DIM}after {time} · {network}{DIM:#}\n"
    )?;
    Ok(())
}

fn changes(report: &PreviewReport, out: &mut Output) -> Result<()> {
    let failed = report.execution.has_failed();
    if failed {
        print_failure_hint(report, out)?;
    }
    if report.is_empty() {
        let told = if failed {
            "The command made no changes before it failed."
        } else {
            "It would change nothing."
        };
        writeln!(out, "{told}")?;
    } else {
        let when = if failed {
            "Before it failed, it would"
        } else {
            "It would"
        };
        writeln!(out, "{when} {}:", counts_text(report.counts))?;
        let width = |row: &PreviewReportRow| row.path.chars().count();
        let width = report.rows.iter().map(width).max().unwrap_or_default();
        for one in &report.rows {
            row(one, width.min(MAX_PATH_WIDTH), out)?;
        }
    }
    if report.more_rows > 0 {
        writeln!(
            out,
            "  {DIM}… and {} more{DIM:#}",
            grouped_number(report.more_rows)
        )?;
    }
    if report.rewritten_unchanged > 0 {
        let (files, places) = (files(report.rewritten_unchanged), &report.rewritten_in);
        let place = match places.as_slice() {
            [one] if one != "." => format!(" in {one}/"),
            _ => String::new(),
        };
        writeln!(
            out,
            "  {DIM}{files}{place} rewritten without changes{DIM:#}"
        )?;
    }
    for path in &report.protected {
        writeln!(
            out,
            "  {YELLOW}never   {path}{YELLOW:#}  never applied: git or unstuck would execute or obey it"
        )?;
    }
    Ok(())
}

/// Warns that a failed command does not show its real changes, with a hint.
fn print_failure_hint(report: &PreviewReport, out: &mut Output) -> Result<()> {
    writeln!(
        out,
        "{RED}The command failed, so its actual changes may differ.{RED:#}"
    )?;
    if !report.execution.network {
        let command = shell_quote(&report.execution.command);
        let reason = if needs_network(&report.execution.command) {
            "It needs network access, which previews do not have by default"
        } else {
            "If it needs network access"
        };
        writeln!(out, "{reason}: unstuck preview {command} --network")?;
    }
    Ok(())
}

fn row(row: &PreviewReportRow, width: usize, out: &mut Output) -> Result<()> {
    let style = match row.change {
        PreviewFileChangeKind::Add => GREEN,
        PreviewFileChangeKind::Delete => RED,
        PreviewFileChangeKind::Change | PreviewFileChangeKind::Mixed => YELLOW,
    };
    let line = format!(
        "{style}{:<6}{style:#}  {:<width$}  {DIM}{}{DIM:#}",
        row.change.name(),
        row.path,
        row.note
    );
    writeln!(out, "  {line}")?;
    Ok(())
}

/// Renders counts such as `change 3 files, add 12, delete 1`.
fn counts_text(counts: FileChangeCounts) -> String {
    let parts = [
        ("change", counts.changed),
        ("add", counts.added),
        ("delete", counts.deleted),
    ];
    let mut words = Vec::new();
    for (verb, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        let what = if words.is_empty() {
            files(count)
        } else {
            grouped_number(count)
        };
        words.push(format!("{verb} {what}"));
    }
    if words.is_empty() {
        "change directories only".to_owned()
    } else {
        words.join(", ")
    }
}

fn files(count: u64) -> String {
    match count {
        1 => "1 file".to_owned(),
        count => format!("{} files", grouped_number(count)),
    }
}

fn print_text_diffs(report: &PreviewReport, out: &mut Output) -> Result<()> {
    for text in &report.texts {
        writeln!(out, "\n{BOLD}{}{BOLD:#}", text.path)?;
        for line in &text.lines {
            let style = match line.as_bytes().first() {
                Some(b'+') => GREEN,
                Some(b'-') => RED,
                Some(b'@') => DIM,
                _ => anstyle::Style::new(),
            };
            writeln!(out, "{style}{line}{style:#}")?;
        }
        if text.more_lines > 0 {
            let more = grouped_number(text.more_lines);
            writeln!(out, "{DIM}… {more} more lines{DIM:#}")?;
        }
    }
    if report.more_texts > 0 {
        let more = files(report.more_texts);
        writeln!(out, "\n{DIM}… and the diffs of {more} more{DIM:#}")?;
    }
    Ok(())
}

fn output(report: &PreviewReport, out: &mut Output) -> Result<()> {
    if report.execution.output.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{DIM}last lines of output:{DIM:#}")?;
    for line in &report.execution.output {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// Prints the limitations of previews.
fn print_limitations(report: &PreviewReport, out: &mut Output) -> Result<()> {
    writeln!(out)?;
    if !report.execution.discarded_writes.is_empty() {
        let several = report
            .execution
            .discarded_writes
            .iter()
            .map(|path| abbreviate_home(path));
        let several = several.collect::<Vec<_>>().join(", ");
        let told = truncate(&several, 200);
        writeln!(
            out,
            "{DIM}writes outside the project, discarded: {told}{DIM:#}"
        )?;
    }
    let only = if report.execution.network {
        "Only file changes are shown. Network effects are real."
    } else {
        "Only file changes are shown, not network effects."
    };
    writeln!(out, "{DIM}{only}{DIM:#}")?;
    if !report.changed_during_run.is_empty() {
        let paths = report.changed_during_run.join(", ");
        writeln!(
            out,
            "{YELLOW}Cannot be applied: the project changed during the preview ({paths}).{YELLOW:#}"
        )?;
    }
    Ok(())
}

/// Prints the final state of a preview and the next commands.
pub(super) fn print_outcome(
    report: &PreviewReport,
    fate: &PreviewOutcome,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let id = &report.id;
    match fate {
        // There is nothing to apply, which the report already says.
        PreviewOutcome::Dropped if report.is_empty() => {}
        PreviewOutcome::Dropped => writeln!(out, "Dropped. The project is unchanged.")?,
        PreviewOutcome::Kept => {
            writeln!(
                out,
                "\nThe project is unchanged. Preview {id} is kept for 1 day:"
            )?;
            for verb in ["apply", "drop"] {
                let line = session.unstuck_command(&format!("preview --{verb} {id}"));
                writeln!(out, "  {line}")?;
            }
        }
        PreviewOutcome::Applied(applied) => {
            let counts = applied.counts;
            let parts = [
                (counts.changed, "changed"),
                (counts.added, "added"),
                (counts.deleted, "deleted"),
            ];
            let parts = parts.iter().filter(|(count, _)| *count > 0);
            let parts: Vec<_> = parts
                .map(|(n, word)| format!("{} {word}", grouped_number(*n)))
                .collect();
            let told = if parts.is_empty() {
                "directories only".to_owned()
            } else {
                parts.join(", ")
            };
            writeln!(out, "{GREEN}Applied{GREEN:#}: {told}.")?;
            for left in &applied.leftovers {
                writeln!(
                    out,
                    "{YELLOW}could not remove {left}; delete it manually{YELLOW:#}"
                )?;
            }
        }
    }
    Ok(())
}

/// Prints the saved previews, one line each.
pub(super) fn list(reports: &[PreviewReport], now: Timestamp, out: &mut Output) -> Result<()> {
    for report in reports {
        let place = abbreviate_home(&report.project.display().to_string());
        let command = truncate(&report.execution.command, 60);
        writeln!(
            out,
            "{BOLD}{}{BOLD:#}  {:<10}  {command}  {DIM}would {} · {place}{DIM:#}",
            report.id,
            format_age(report.made_at, now),
            counts_text(report.counts),
        )?;
    }
    Ok(())
}
