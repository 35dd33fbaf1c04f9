//! `unstuck trust`: what the project says about repairs counts from now on, as it is now.

use std::io::Write;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use unstuck_core::guard::show;
use unstuck_repair::trust::Standing;

use crate::config::Config;
use crate::output::{BOLD, DIM, GREEN, Output, YELLOW};
use crate::place::{homely, project_of};
use crate::report::hinted;
use crate::trusting::{Project, Shown, Word, allowed};
use crate::{clock, place, trusting};

/// Trust what this project says about repairs, as it is now
///
/// Agents can write the project's files, so what its `[recovery]` section allows counts only once you have trusted it. It
/// counts until its content changes; comments and order do not matter. The files that decide what the allowed commands
/// execute (scripts of package.json, Makefile, git hooks, …) are accepted with it, as they are now.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck trust            show what is allowed here, and trust it
  unstuck trust --show     only show it, and whether it is trusted
  unstuck trust --forget   trust it no longer

What you trusted is kept in ~/.local/state/unstuck/trust, outside of every project. `trust_project_config = true` in
your own configuration (~/.config/unstuck/config.toml) trusts all projects, with all their changes.")]
pub(crate) struct TrustArgs {
    /// Only show what is allowed here and whether it is trusted
    #[arg(long, conflicts_with = "forget")]
    show: bool,

    /// Forget what was trusted and accepted here
    #[arg(long)]
    forget: bool,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What there is to tell, for machines.
#[derive(Serialize)]
struct Row<'a> {
    project: String,
    standing: &'static str,
    config: String,
    hash: Option<String>,
    #[serde(flatten)]
    shown: &'a Shown,
}

impl TrustArgs {
    /// Whether something is trusted or forgotten, and not only shown.
    pub(crate) fn trusts(&self) -> bool {
        !self.show
    }
}

pub(crate) fn run(args: &TrustArgs, config: &Config, out: &mut Output) -> Result<()> {
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let root = project_of(&here.canonicalize().unwrap_or(here));
    let project = Project::new(config, &root);
    if args.forget {
        return forget(&project, args.json, out);
    }
    let Some(shown) = Shown::of(&project)? else {
        return settings_only(&project, args, out);
    };
    let mut word = project.word();
    if !args.show {
        project.accept(shown.baseline.clone())?;
        project.accept_settings()?;
        word = project.word();
    }
    if args.json {
        return out.json(&Row {
            project: root.display().to_string(),
            standing: standing(&word),
            config: project.files(),
            hash: config.project_recovery().map(|said| said.hash()),
            shown: &shown,
        });
    }
    tell(&project, &shown, out)?;
    match args.show {
        true => stands(&project, &word, out),
        false => done(&project, &shown, out),
    }
}

/// The project says nothing about repairs, but what its roles and checks run.
fn settings_only(project: &Project<'_>, args: &TrustArgs, out: &mut Output) -> Result<()> {
    if project.config.project_commands().is_empty() {
        return Err(nothing(&project.root));
    }
    if !args.show {
        project.accept_settings()?;
    }
    let is_trusted = trusting::trusts_settings(project.config, &project.root);
    let commands = project.config.project_commands();
    if args.json {
        return out.json(&serde_json::json!({
            "project": project.root.display().to_string(),
            "standing": if is_trusted { "trusted" } else { "unknown" },
            "commands": commands,
        }));
    }
    let root = homely(&project.root.display().to_string());
    writeln!(
        out,
        "{BOLD}{root}{BOLD:#}: no [recovery], so no repair runs without asking"
    )?;
    commands_told(project, out)?;
    match is_trusted {
        true => writeln!(
            out,
            "{GREEN}trusted{GREEN:#}: runs that are under way use it as it is now"
        )?,
        false => writeln!(
            out,
            "{YELLOW}not trusted{YELLOW:#}: runs that are under way ask before they use what was changed"
        )?,
    }
    Ok(())
}

/// What the project's files let run beside repairs.
fn commands_told(project: &Project<'_>, out: &mut Output) -> Result<()> {
    for command in project.config.project_commands() {
        let value = show(&command.value.to_string());
        writeln!(out, "  {}: {value}", show(&command.path))?;
    }
    Ok(())
}

/// There is nothing that could be trusted.
fn nothing(root: &std::path::Path) -> anyhow::Error {
    let root = homely(&root.display().to_string());
    hinted(
        format!(
            "there is nothing to trust in {root}: no [recovery] section is in unstuck.toml here or above, and none in your own configuration"
        ),
        "go to the project that you mean, or write down what may run: [recovery] with auto_approve = [\"npm install\"]",
    )
}

fn standing(word: &Word) -> &'static str {
    match word {
        Word::Nothing => "nothing_to_trust",
        Word::Always => "always",
        Word::Trusted => "trusted",
        Word::Not(Standing::Changed { .. }) => "changed",
        Word::Not(Standing::Declined) => "declined",
        Word::Not(_) => "unknown",
    }
}

fn tell(project: &Project<'_>, shown: &Shown, out: &mut Output) -> Result<()> {
    let root = place::homely(&project.root.display().to_string());
    match project.config.project_recovery() {
        Some(said) => writeln!(
            out,
            "{BOLD}{root}{BOLD:#}: [recovery] of {} {DIM}(sha256 {}…){DIM:#}",
            project.files(),
            &said.hash()[..12]
        )?,
        None => writeln!(
            out,
            "{BOLD}{root}{BOLD:#}: [recovery] of your own configuration"
        )?,
    }
    for line in allowed(&shown.section)
        .into_iter()
        .chain(shown.file_lines())
    {
        writeln!(out, "  {line}")?;
    }
    commands_told(project, out)?;
    for warning in &shown.warnings {
        writeln!(out, "{YELLOW}note{YELLOW:#}: {warning}")?;
    }
    for file in project.config.distrusted() {
        writeln!(out, "{YELLOW}note{YELLOW:#}: {file}")?;
    }
    Ok(())
}

/// How it stands, where nothing was changed.
fn stands(project: &Project<'_>, word: &Word, out: &mut Output) -> Result<()> {
    match word {
        Word::Nothing => writeln!(
            out,
            "it counts as it is: there is nothing in it that would have to be trusted"
        )?,
        Word::Always => writeln!(
            out,
            "{GREEN}trusted{GREEN:#}: your own configuration trusts all projects"
        )?,
        Word::Trusted => writeln!(out, "{GREEN}trusted{GREEN:#}")?,
        Word::Not(Standing::Changed { since, .. }) => {
            writeln!(
                out,
                "{YELLOW}not trusted{YELLOW:#}: it has changed since {}",
                clock::shown(*since)
            )?;
        }
        Word::Not(_) => writeln!(
            out,
            "{YELLOW}not trusted{YELLOW:#}: it approves nothing until `unstuck trust`"
        )?,
    }
    if let Word::Not(standing) = word {
        for change in project.changes(standing) {
            let mark = if change.widens { '+' } else { '-' };
            writeln!(out, "  {mark} {}", show(&change.what))?;
        }
    }
    Ok(())
}

fn done(project: &Project<'_>, shown: &Shown, out: &mut Output) -> Result<()> {
    let files = match shown.files.len() {
        0 => String::new(),
        1 => ", and 1 file is accepted as it is".to_owned(),
        many => format!(", and {many} files are accepted as they are"),
    };
    let what = match project.config.project_recovery() {
        Some(_) => "it counts here until it changes",
        None => "your own configuration counts anyway",
    };
    writeln!(out, "{GREEN}trusted{GREEN:#}: {what}{files}")?;
    Ok(())
}

fn forget(project: &Project<'_>, json: bool, out: &mut Output) -> Result<()> {
    let had = project.forget()?;
    if json {
        return out.json(&serde_json::json!({ "forgotten": had }));
    }
    let root = homely(&project.root.display().to_string());
    match had {
        true => writeln!(out, "forgotten: nothing of {root} is trusted any more")?,
        false => writeln!(out, "nothing of {root} was trusted")?,
    }
    Ok(())
}
