//! What is printed about a preview.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::action::shell_quote;
use unstuck_core::duration::Human;
use unstuck_core::repair::needs_network;
use unstuck_repair::preview::{Counts, Report, Row, What, spaced};

use super::Fate;
use crate::clock::ago;
use crate::output::{BOLD, DIM, GREEN, Output, RED, YELLOW};
use crate::place::homely;
use crate::session::Session;
use crate::show_text::cut;

/// How wide a path is before notes stand behind it without a column of their own.
const WIDEST: usize = 60;

/// What `--json` prints.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// What has become of it: kept, dropped or applied.
    fate: &'static str,
    /// What could not be removed after it was applied.
    #[serde(rename = "left")]
    left: &'a [String],
}

pub(super) fn json(report: &Report, fate: &Fate, out: &mut Output) -> Result<()> {
    let left: &[String] = match fate {
        Fate::Applied(applied) => &applied.left,
        Fate::Kept | Fate::Dropped => &[],
    };
    let told = Told {
        report,
        fate: match fate {
            Fate::Kept => "kept",
            Fate::Dropped => "dropped",
            Fate::Applied(_) => "applied",
        },
        left,
    };
    out.json(&told)
}

/// What ran, how it ended, and what it would change.
pub(super) fn report(report: &Report, out: &mut Output) -> Result<()> {
    head(report, out)?;
    changes(report, out)?;
    texts(report, out)?;
    output(report, out)?;
    limits(report, out)
}

fn head(report: &Report, out: &mut Output) -> Result<()> {
    let ran = &report.ran;
    let mut place = homely(&report.project.display().to_string());
    if !ran.working_dir.is_empty() && ran.working_dir != "." {
        place = format!("{place}/{}", ran.working_dir);
    }
    let (style, end) = match (ran.timed_out, ran.exit_code) {
        (true, _) => (RED, "stopped, it took too long,".to_owned()),
        (false, 0) => (GREEN, "exit 0".to_owned()),
        (false, code) => (RED, format!("exit {code}")),
    };
    let time = Human(ran.duration);
    let network = match ran.network {
        true => "with network",
        false => "without network",
    };
    writeln!(out, "{BOLD}{}{BOLD:#}", ran.command)?;
    writeln!(
        out,
        "{DIM}on an overlay of {place} ·{DIM:#} {style}{end}{style:#} {DIM}after {time} · {network}{DIM:#}\n"
    )?;
    Ok(())
}

fn changes(report: &Report, out: &mut Output) -> Result<()> {
    let failed = report.ran.failed();
    if failed {
        why_it_failed(report, out)?;
    }
    if report.is_empty() {
        let told = match failed {
            true => "Up to then it had changed nothing.",
            false => "It would change nothing.",
        };
        writeln!(out, "{told}")?;
    } else {
        let when = if failed {
            "Up to then it would"
        } else {
            "It would"
        };
        writeln!(out, "{when} {}:", in_words(report.counts))?;
        let width = |row: &Row| row.path.chars().count();
        let width = report.rows.iter().map(width).max().unwrap_or_default();
        for one in &report.rows {
            row(one, width.min(WIDEST), out)?;
        }
    }
    if report.more_rows > 0 {
        writeln!(out, "  {DIM}… and {} more{DIM:#}", spaced(report.more_rows))?;
    }
    if report.same > 0 {
        let (files, places) = (files(report.same), &report.same_in);
        let place = match places.as_slice() {
            [one] if one != "." => format!(" in {one}/"),
            _ => String::new(),
        };
        writeln!(out, "  {DIM}{files}{place} written again as before{DIM:#}")?;
    }
    for path in &report.refused {
        writeln!(
            out,
            "  {YELLOW}never   {path}{YELLOW:#}  unstuck or git would obey it, so it is not applied"
        )?;
    }
    Ok(())
}

/// Says that a command that failed does not show what it would change, and what may help.
fn why_it_failed(report: &Report, out: &mut Output) -> Result<()> {
    writeln!(
        out,
        "{RED}It failed, so this is not what it would change.{RED:#}"
    )?;
    if !report.ran.network {
        let command = shell_quote(&report.ran.command);
        let reason = match needs_network(&report.ran.command) {
            true => "It fetches from the network, and had none",
            false => "It had no network; if it needs one",
        };
        writeln!(out, "{reason}: unstuck preview {command} --network")?;
    }
    Ok(())
}

fn row(row: &Row, width: usize, out: &mut Output) -> Result<()> {
    let style = match row.what {
        What::Add => GREEN,
        What::Delete => RED,
        What::Change | What::Mixed => YELLOW,
    };
    let line = format!(
        "{style}{:<6}{style:#}  {:<width$}  {DIM}{}{DIM:#}",
        row.what.name(),
        row.path,
        row.note
    );
    writeln!(out, "  {line}")?;
    Ok(())
}

/// `change 3 files, add 12, delete 1`.
fn in_words(counts: Counts) -> String {
    let parts = [
        ("change", counts.changed),
        ("add", counts.added),
        ("delete", counts.deleted),
    ];
    let mut words = Vec::new();
    for (verb, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        let what = match words.is_empty() {
            true => files(count),
            false => spaced(count),
        };
        words.push(format!("{verb} {what}"));
    }
    match words.is_empty() {
        true => "change folders only".to_owned(),
        false => words.join(", "),
    }
}

fn files(count: u64) -> String {
    match count {
        1 => "1 file".to_owned(),
        count => format!("{} files", spaced(count)),
    }
}

fn texts(report: &Report, out: &mut Output) -> Result<()> {
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
            let more = spaced(text.more_lines);
            writeln!(out, "{DIM}… {more} more lines{DIM:#}")?;
        }
    }
    if report.more_texts > 0 {
        let more = files(report.more_texts);
        writeln!(out, "\n{DIM}… the differences of {more} more{DIM:#}")?;
    }
    Ok(())
}

fn output(report: &Report, out: &mut Output) -> Result<()> {
    if report.ran.output.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{DIM}the last lines that it wrote:{DIM:#}")?;
    for line in &report.ran.output {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// What a preview does not show.
fn limits(report: &Report, out: &mut Output) -> Result<()> {
    writeln!(out)?;
    if !report.ran.discarded.is_empty() {
        let several = report.ran.discarded.iter().map(|path| homely(path));
        let several = several.collect::<Vec<_>>().join(", ");
        let told = cut(&several, 200);
        writeln!(
            out,
            "{DIM}written outside of the project, to a copy that is gone: {told}{DIM:#}"
        )?;
    }
    let only = match report.ran.network {
        true => "Only files are shown. What it did over the network is done.",
        false => "Only files are shown, not what it would do over the network.",
    };
    writeln!(out, "{DIM}{only}{DIM:#}")?;
    if !report.unsettled.is_empty() {
        let paths = report.unsettled.join(", ");
        writeln!(
            out,
            "{YELLOW}It cannot be applied: the project changed while it ran, in {paths}.{YELLOW:#}"
        )?;
    }
    Ok(())
}

/// What has become of a preview, and what can be done now.
pub(super) fn fate(
    report: &Report,
    fate: &Fate,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    let id = &report.id;
    match fate {
        // There is nothing to apply, and whoever reads it knows that.
        Fate::Dropped if report.is_empty() => {}
        Fate::Dropped => writeln!(out, "Dropped. The project is as it was.")?,
        Fate::Kept => {
            writeln!(
                out,
                "\nNothing was changed. Preview {id} is kept for a day:"
            )?;
            for verb in ["apply", "drop"] {
                let line = session.line(&format!("preview --{verb} {id}"));
                writeln!(out, "  {line}")?;
            }
        }
        Fate::Applied(applied) => {
            let counts = applied.counts;
            let parts = [
                (counts.changed, "changed"),
                (counts.added, "added"),
                (counts.deleted, "deleted"),
            ];
            let parts = parts.iter().filter(|(count, _)| *count > 0);
            let parts: Vec<_> = parts
                .map(|(n, word)| format!("{} {word}", spaced(*n)))
                .collect();
            let told = match parts.is_empty() {
                true => "folders only".to_owned(),
                false => parts.join(", "),
            };
            writeln!(out, "{GREEN}Applied{GREEN:#}: {told}.")?;
            for left in &applied.left {
                writeln!(
                    out,
                    "{YELLOW}{left} could not be removed; it is not needed{YELLOW:#}"
                )?;
            }
        }
    }
    Ok(())
}

/// The previews that are kept, a line each.
pub(super) fn list(reports: &[Report], now: Timestamp, out: &mut Output) -> Result<()> {
    for report in reports {
        let place = homely(&report.project.display().to_string());
        let command = cut(&report.ran.command, 60);
        writeln!(
            out,
            "{BOLD}{}{BOLD:#}  {:<10}  {command}  {DIM}would {} · {place}{DIM:#}",
            report.id,
            ago(report.made_at, now),
            in_words(report.counts),
        )?;
    }
    Ok(())
}
