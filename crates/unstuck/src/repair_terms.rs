//! What may be repaired here: what the configuration says, as far as its owner has trusted it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use unstuck_config::section::{RecoverySection, Sandbox};
use unstuck_config::{ProjectTrust, diff_policies};
use unstuck_core::command_policy::{PolicyContext, RepairPolicy, Verdict};
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::sandbox::SandboxMode;
use unstuck_repair::watched_files::WatchedFiles;
use unstuck_run::runner::{RepairMode, RepairSettings, RequestedRepairMode};

use crate::config::Config;
use crate::error_report::error_with_hint;
use crate::project_trust;

/// When the environment is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RepairModeArg {
    /// What the owner allows runs by itself; anything else asks
    Auto,
    /// Nothing runs without asking
    Ask,
    /// Nothing is repaired
    Off,
}

impl RepairModeArg {
    /// What was asked for on the command line; otherwise the configuration counts.
    pub(crate) fn resolve(asked: Option<Self>) -> RequestedRepairMode {
        match asked {
            None => RequestedRepairMode::Configured,
            Some(Self::Auto) => RequestedRepairMode::Auto,
            Some(Self::Ask) => RequestedRepairMode::Ask,
            Some(Self::Off) => RequestedRepairMode::Off,
        }
    }
}

/// What may be repaired, and what a person should know about that.
#[derive(Debug, Default)]
pub(crate) struct RepairSetup {
    /// None where nothing is repaired.
    pub(crate) terms: Option<RepairSettings>,
    /// What the project would allow beyond that if its owner trusted it, in words.
    pub(crate) untrusted: Vec<String>,
    /// What is told before anything runs.
    pub(crate) notes: Vec<String>,
}

/// What may be repaired in a project; on a terminal its owner is asked about what is new.
pub(crate) fn repair_setup(
    config: &Config,
    project: &Path,
    wish: RequestedRepairMode,
    may_ask: bool,
) -> Result<RepairSetup> {
    if wish != RequestedRepairMode::Off && may_ask {
        project_trust::ask_trust(config, project)?;
    }
    repair_setup_unattended(config, project, wish)
}

/// What may be repaired in a project, without asking anybody.
pub(crate) fn repair_setup_unattended(
    config: &Config,
    project: &Path,
    wish: RequestedRepairMode,
) -> Result<RepairSetup> {
    let trust = project_trust::project_trust(config, project);
    let said = config.repair_policy(trust);
    let section = match (wish, said) {
        (RequestedRepairMode::Off, _) | (RequestedRepairMode::Configured, None) => {
            return Ok(RepairSetup::default());
        }
        (_, None) => RecoverySection::default(),
        (_, Some(section)) => section,
    };
    let untrusted = untrusted_rules(config, trust, &section);
    let file = declaring_file(config).filter(|_| !untrusted.is_empty());
    let mut notes: Vec<_> = config
        .untrusted_files()
        .iter()
        .map(ToString::to_string)
        .collect();
    notes.extend(project_trust::untrusted_notice(config, project));
    if !section.enabled {
        return Ok(RepairSetup {
            terms: None,
            untrusted,
            notes,
        });
    }
    let terms = RepairSettings {
        mode: match wish {
            RequestedRepairMode::Ask => RepairMode::Ask,
            _ => RepairMode::Auto,
        },
        rules: rules_from_section(&section)?,
        untrusted: file,
        sandbox: sandbox_mode(section.sandbox),
        accepts_incomplete: matches!(
            config.owner_sandbox(),
            Some(Sandbox::BestEffort | Sandbox::Off)
        ),
        network: section.network,
        write_paths: section.allowed_write_paths,
        env_keep: section.env_keep,
        checks_watched_files: section.guard_files,
    };
    Ok(RepairSetup {
        terms: Some(terms),
        untrusted,
        notes,
    })
}

/// What a command is judged by in a project.
pub(crate) fn command_rules(config: &Config, project: &Path) -> Result<RepairPolicy> {
    let section = config.repair_policy(project_trust::project_trust(config, project));
    rules_from_section(&section.unwrap_or_default())
}

fn rules_from_section(section: &RecoverySection) -> Result<RepairPolicy> {
    section.rules().map_err(|error| {
        error_with_hint(
            format!("[recovery]: {error}"),
            "nothing is repaired until that is right; `unstuck config check` looks again",
        )
    })
}

/// What the project would allow beyond what counts, in words.
fn untrusted_rules(config: &Config, trust: ProjectTrust, counts: &RecoverySection) -> Vec<String> {
    let trusted = match trust {
        ProjectTrust::Trusted => None,
        ProjectTrust::Untrusted => config.repair_policy(ProjectTrust::Trusted),
    };
    let changes = trusted.map(|trusted| diff_policies(counts, &trusted));
    let wider = changes.into_iter().flatten().filter(|change| change.widens);
    wider
        .map(|change| format!("{}: {}", change.field, change.description))
        .collect()
}

/// The project's own file that says something about repairs.
fn declaring_file(config: &Config) -> Option<String> {
    let file: &PathBuf = config.project_recovery()?.files.last()?;
    let name = file.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

fn sandbox_mode(sandbox: Sandbox) -> SandboxMode {
    match sandbox {
        Sandbox::Required => SandboxMode::Required,
        Sandbox::BestEffort => SandboxMode::BestEffort,
        Sandbox::Off => SandboxMode::Off,
    }
}

/// Where a command stands that is only asked about: whether its files are as they were accepted.
pub(crate) fn policy_context(
    config: &Config,
    root: &ProjectRoot,
    command: &str,
    working_dir: Option<&str>,
) -> PolicyContext {
    let project = root.path();
    let trust = project_trust::project_trust(config, project);
    let section = config.repair_policy(trust).unwrap_or_default();
    let untrusted = untrusted_rules(config, trust, &section);
    let folder = root.open_working_dir(working_dir);
    let changed = match folder.ok().filter(|_| section.guard_files) {
        None => Vec::new(),
        Some(folder) => {
            let committed = project_trust::committed_files(Some(project));
            let mut accepted = project_trust::files_at_start(config, Some(project), &*committed);
            accepted.extend(project_trust::accepted_files(project));
            let files = WatchedFiles::new(root, &*committed).with_baseline(&accepted);
            files.check(command, folder.relative()).changed
        }
    };
    PolicyContext {
        untrusted_config: declaring_file(config).filter(|_| !untrusted.is_empty()),
        changed_watched_files: changed.into_iter().map(|file| file.path).collect(),
        ..PolicyContext::default()
    }
}

/// The exit code that tells a verdict.
pub(crate) fn verdict_exit_code(verdict: &Verdict) -> ExitCode {
    ExitCode::from(match verdict {
        Verdict::Run(_) => 0,
        Verdict::RequireApproval(_) => 3,
        Verdict::Deny | Verdict::RejectProposal => 1,
    })
}
