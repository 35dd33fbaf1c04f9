//! `unstuck trust`: trusts the current repair rules of a project.

use std::io::Write;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use unstuck_core::command_policy::sanitize;
use unstuck_repair::trust::TrustStatus;

use crate::config::Config;
use crate::error_report::error_with_hint;
use crate::output::{BOLD, DIM, GREEN, Output, YELLOW};
use crate::project_lookup::{abbreviate_home, project_of};
use crate::project_trust::{
    ProjectTrustState, ProjectWithTrustRecord, TrustContents, allowed_lines,
};
use crate::{clock, project_lookup, project_trust};

/// Trust this project's repair rules (current version)
///
/// Agents can write the project's files, so permissions in its `[recovery]` section apply only after you have trusted
/// it; restrictions always apply. Trust lasts until the content changes; comments and order do not matter. This
/// command also accepts the commands and checks of roles, and the current state of the watched files, which decide
/// what the allowed commands execute (scripts of package.json, Makefile, git hooks, …).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck trust            show the rules of this project and trust them
  unstuck trust --show     only show them, and whether they are trusted
  unstuck trust --forget   revoke the trust

Trust is stored in ~/.local/state/unstuck/trust, outside all projects. To trust all projects with
all their changes, set `trust_project_config = true` in your own configuration
(~/.config/unstuck/config.toml).")]
pub(crate) struct TrustArgs {
    /// Only show the rules and whether they are trusted
    #[arg(long, conflicts_with = "forget")]
    show: bool,

    /// Revoke the trust in this project's rules and watched files
    #[arg(long)]
    forget: bool,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// The JSON result of `unstuck trust`.
#[derive(Serialize)]
struct TrustJson<'a> {
    project: String,
    status: &'static str,
    config: String,
    hash: Option<String>,
    #[serde(flatten)]
    contents: &'a TrustContents,
}

impl TrustArgs {
    /// True if trust is granted or revoked, not only shown.
    pub(crate) fn changes_trust(&self) -> bool {
        !self.show
    }
}

pub(crate) fn run(args: &TrustArgs, config: &Config, out: &mut Output) -> Result<()> {
    let here = std::env::current_dir().context("cannot determine the current directory")?;
    let root = project_of(&here.canonicalize().unwrap_or(here));
    let project = ProjectWithTrustRecord::new(config, &root);
    if args.forget {
        return forget(&project, args.json, out);
    }
    let Some(shown) = TrustContents::of_project(&project)? else {
        return settings_only(&project, args, out);
    };
    let mut word = project.trust_state();
    if !args.show {
        project.accept(shown.baseline.clone())?;
        project.accept_settings()?;
        word = project.trust_state();
    }
    if args.json {
        return out.write_json(&TrustJson {
            project: root.display().to_string(),
            status: status_name(&word),
            config: project.files(),
            hash: config.project_recovery().map(|said| said.hash()),
            contents: &shown,
        });
    }
    print_contents(&project, &shown, out)?;
    if args.show {
        print_status(&project, &word, out)
    } else {
        print_trusted(&project, &shown, out)
    }
}

/// Handles a project without repair rules but with commands of roles or checks.
fn settings_only(
    project: &ProjectWithTrustRecord<'_>,
    args: &TrustArgs,
    out: &mut Output,
) -> Result<()> {
    if project.config.project_commands().is_empty() {
        return Err(nothing_to_trust(&project.root));
    }
    if !args.show {
        project.accept_settings()?;
    }
    let is_trusted = project_trust::trusts_settings(project.config, &project.root);
    let commands = project.config.project_commands();
    if args.json {
        return out.write_json(&serde_json::json!({
            "project": project.root.display().to_string(),
            "status": if is_trusted { "trusted" } else { "unknown" },
            "commands": commands,
        }));
    }
    let root = abbreviate_home(&project.root.display().to_string());
    writeln!(
        out,
        "{BOLD}{root}{BOLD:#}: no [recovery] section, so every repair needs approval"
    )?;
    print_commands(project, out)?;
    if is_trusted {
        writeln!(
            out,
            "{GREEN}trusted{GREEN:#}: active runs use the current version"
        )?
    } else {
        writeln!(
            out,
            "{YELLOW}not trusted{YELLOW:#}: active runs ask before they use changes"
        )?
    }
    Ok(())
}

/// Prints the commands that the project's files run besides repairs.
fn print_commands(project: &ProjectWithTrustRecord<'_>, out: &mut Output) -> Result<()> {
    for command in project.config.project_commands() {
        let value = sanitize(&command.value.to_string());
        writeln!(out, "  {}: {value}", sanitize(&command.path))?;
    }
    Ok(())
}

/// Returns the error for a project that has nothing to trust.
fn nothing_to_trust(root: &std::path::Path) -> anyhow::Error {
    let root = abbreviate_home(&root.display().to_string());
    error_with_hint(
        format!(
            "nothing to trust in {root}: no [recovery] section in unstuck.toml here or above, or in your own configuration"
        ),
        "change to the project's directory, or add [recovery] with auto_approve = [\"npm install\"]",
    )
}

fn status_name(word: &ProjectTrustState) -> &'static str {
    match word {
        ProjectTrustState::NothingDeclared => "nothing_to_trust",
        ProjectTrustState::TrustsAll => "always",
        ProjectTrustState::Trusted => "trusted",
        ProjectTrustState::Untrusted(TrustStatus::Changed { .. }) => "changed",
        ProjectTrustState::Untrusted(TrustStatus::Declined) => "declined",
        ProjectTrustState::Untrusted(_) => "unknown",
    }
}

fn print_contents(
    project: &ProjectWithTrustRecord<'_>,
    shown: &TrustContents,
    out: &mut Output,
) -> Result<()> {
    let root = project_lookup::abbreviate_home(&project.root.display().to_string());
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
    for line in allowed_lines(&shown.section)
        .into_iter()
        .chain(shown.file_lines())
    {
        writeln!(out, "  {line}")?;
    }
    print_commands(project, out)?;
    for warning in &shown.warnings {
        writeln!(out, "{YELLOW}note{YELLOW:#}: {warning}")?;
    }
    for file in project.config.untrusted_files() {
        writeln!(out, "{YELLOW}note{YELLOW:#}: {file}")?;
    }
    Ok(())
}

/// Prints the current trust state.
fn print_status(
    project: &ProjectWithTrustRecord<'_>,
    word: &ProjectTrustState,
    out: &mut Output,
) -> Result<()> {
    match word {
        ProjectTrustState::NothingDeclared => {
            writeln!(out, "in effect: nothing in it requires trust")?
        }
        ProjectTrustState::TrustsAll => writeln!(
            out,
            "{GREEN}trusted{GREEN:#}: your own configuration trusts all projects"
        )?,
        ProjectTrustState::Trusted => writeln!(out, "{GREEN}trusted{GREEN:#}")?,
        ProjectTrustState::Untrusted(TrustStatus::Changed { since, .. }) => {
            writeln!(
                out,
                "{YELLOW}not trusted{YELLOW:#}: changed since {}",
                clock::format_time(*since)
            )?;
        }
        ProjectTrustState::Untrusted(_) => writeln!(
            out,
            "{YELLOW}not trusted{YELLOW:#}: approves nothing until you run `unstuck trust`"
        )?,
    }
    if let ProjectTrustState::Untrusted(standing) = word {
        for change in project.changes(standing) {
            let mark = if change.widens { '+' } else { '-' };
            writeln!(out, "  {mark} {}", sanitize(&change.description))?;
        }
    }
    Ok(())
}

fn print_trusted(
    project: &ProjectWithTrustRecord<'_>,
    shown: &TrustContents,
    out: &mut Output,
) -> Result<()> {
    let files = match shown.files.len() {
        0 => String::new(),
        1 => "; accepted 1 file in its current state".to_owned(),
        many => format!("; accepted {many} files in their current state"),
    };
    let what = match project.config.project_recovery() {
        Some(_) => " until it changes",
        None => ": your own configuration applies in any case",
    };
    writeln!(out, "{GREEN}trusted{GREEN:#}{what}{files}")?;
    Ok(())
}

fn forget(project: &ProjectWithTrustRecord<'_>, json: bool, out: &mut Output) -> Result<()> {
    let had = project.forget()?;
    if json {
        return out.write_json(&serde_json::json!({ "revoked": had }));
    }
    let root = abbreviate_home(&project.root.display().to_string());
    if had {
        writeln!(out, "trust revoked: {root}")?
    } else {
        writeln!(out, "{root} was not trusted")?
    }
    Ok(())
}
