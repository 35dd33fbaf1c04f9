//! Effective repair settings: the configuration, as far as its owner has trusted it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use unstuck_config::section::{RepairPolicySection, SandboxModeSetting};
use unstuck_config::{ProjectTrust, diff_policies};
use unstuck_core::command_policy::{CommandVerdict, CommandVerdictRestrictions, RepairPolicy};
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::sandbox::SandboxMode;
use unstuck_repair::watched_files::WatchedFilesChecker;
use unstuck_run::runner::{RepairMode, RepairSettings, RequestedRepairMode};

use crate::config::Config;
use crate::error_report::error_with_hint;
use crate::project_trust;

/// When the environment is repaired
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RepairModeArg {
    /// Run allowed fixes automatically; ask about others
    Auto,
    /// Ask before every fix
    Ask,
    /// Disable repairs
    Off,
}

impl RepairModeArg {
    /// Returns the mode from the command line; otherwise the configured one.
    pub(crate) fn resolve(asked: Option<Self>) -> RequestedRepairMode {
        match asked {
            None => RequestedRepairMode::Configured,
            Some(Self::Auto) => RequestedRepairMode::Auto,
            Some(Self::Ask) => RequestedRepairMode::Ask,
            Some(Self::Off) => RequestedRepairMode::Off,
        }
    }
}

/// The effective repair settings of a project, with notes for the user.
#[derive(Debug, Default)]
pub(crate) struct EffectiveRepairSettings {
    /// None if repairs are disabled.
    pub(crate) terms: Option<RepairSettings>,
    /// Rules of the project that would apply if its owner trusted them.
    pub(crate) untrusted: Vec<String>,
    /// Notes to print before the start.
    pub(crate) notes: Vec<String>,
}

/// Returns the repair setup of a project; asks about new rules on a terminal.
pub(crate) fn repair_setup(
    config: &Config,
    project: &Path,
    wish: RequestedRepairMode,
    may_ask: bool,
) -> Result<EffectiveRepairSettings> {
    if wish != RequestedRepairMode::Off && may_ask {
        project_trust::ask_trust(config, project)?;
    }
    repair_setup_unattended(config, project, wish)
}

/// Returns the repair setup of a project without prompting.
pub(crate) fn repair_setup_unattended(
    config: &Config,
    project: &Path,
    wish: RequestedRepairMode,
) -> Result<EffectiveRepairSettings> {
    let trust = project_trust::project_trust(config, project);
    let said = config.repair_policy(trust);
    let section = match (wish, said) {
        (RequestedRepairMode::Off, _) | (RequestedRepairMode::Configured, None) => {
            return Ok(EffectiveRepairSettings::default());
        }
        (_, None) => RepairPolicySection::default(),
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
        return Ok(EffectiveRepairSettings {
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
            Some(SandboxModeSetting::BestEffort | SandboxModeSetting::Off)
        ),
        network: section.network,
        write_paths: section.allowed_write_paths,
        env_keep: section.env_keep,
        checks_watched_files: section.guard_files,
    };
    Ok(EffectiveRepairSettings {
        terms: Some(terms),
        untrusted,
        notes,
    })
}

/// Returns the rules by which commands are evaluated in a project.
pub(crate) fn command_rules(config: &Config, project: &Path) -> Result<RepairPolicy> {
    let section = config.repair_policy(project_trust::project_trust(config, project));
    rules_from_section(&section.unwrap_or_default())
}

fn rules_from_section(section: &RepairPolicySection) -> Result<RepairPolicy> {
    section.rules().map_err(|error| {
        error_with_hint(
            format!("[recovery]: {error}"),
            "fix this, then run `unstuck config check`",
        )
    })
}

/// Describes the rules of the project that do not apply because they are not trusted.
fn untrusted_rules(
    config: &Config,
    trust: ProjectTrust,
    counts: &RepairPolicySection,
) -> Vec<String> {
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

/// Returns the project's own file that declares repair rules.
fn declaring_file(config: &Config) -> Option<String> {
    let file: &PathBuf = config.project_recovery()?.files.last()?;
    let name = file.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

fn sandbox_mode(sandbox: SandboxModeSetting) -> SandboxMode {
    match sandbox {
        SandboxModeSetting::Required => SandboxMode::Required,
        SandboxModeSetting::BestEffort => SandboxMode::BestEffort,
        SandboxModeSetting::Off => SandboxMode::Off,
    }
}

/// Returns the policy context of a command that is only checked, including the state of its watched files.
pub(crate) fn policy_context(
    config: &Config,
    root: &ProjectRoot,
    command: &str,
    working_dir: Option<&str>,
) -> CommandVerdictRestrictions {
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
            let files = WatchedFilesChecker::new(root, &*committed).with_baseline(&accepted);
            files.check(command, folder.relative()).changed
        }
    };
    CommandVerdictRestrictions {
        untrusted_config: declaring_file(config).filter(|_| !untrusted.is_empty()),
        changed_watched_files: changed.into_iter().map(|file| file.path).collect(),
        ..CommandVerdictRestrictions::default()
    }
}

/// Returns the exit code for a verdict.
pub(crate) fn verdict_exit_code(verdict: &CommandVerdict) -> ExitCode {
    ExitCode::from(match verdict {
        CommandVerdict::Run(_) => 0,
        CommandVerdict::RequireApproval(_) => 3,
        CommandVerdict::Deny | CommandVerdict::RejectProposal => 1,
    })
}
