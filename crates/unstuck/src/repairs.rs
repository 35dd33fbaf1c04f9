//! What may be repaired here: what the configuration says, as far as its owner has trusted it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use unstuck_config::section::{RecoverySection, Sandbox};
use unstuck_config::{ProjectTrust, difference};
use unstuck_core::guard::{Rules, Standing, Verdict};
use unstuck_repair::guard_files::GuardFiles;
use unstuck_repair::place::Root;
use unstuck_repair::sandbox::Demand;
use unstuck_run::drive::{RepairMode, RepairTerms, RepairWish};

use crate::config::Config;
use crate::report::hinted;
use crate::trusting;

/// When the environment is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Repair {
    /// What the owner allows runs by itself; anything else asks
    Auto,
    /// Nothing runs without asking
    Ask,
    /// Nothing is repaired
    Off,
}

impl Repair {
    /// What was asked for on the command line; otherwise the configuration counts.
    pub(crate) fn wish(asked: Option<Self>) -> RepairWish {
        match asked {
            None => RepairWish::Configured,
            Some(Self::Auto) => RepairWish::Auto,
            Some(Self::Ask) => RepairWish::Ask,
            Some(Self::Off) => RepairWish::Off,
        }
    }
}

/// What may be repaired, and what a person should know about that.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    /// None where nothing is repaired.
    pub(crate) terms: Option<RepairTerms>,
    /// What the project would allow beyond that if its owner trusted it, in words.
    pub(crate) untrusted: Vec<String>,
    /// What is told before anything runs.
    pub(crate) notes: Vec<String>,
}

/// What may be repaired in a project; on a terminal its owner is asked about what is new.
pub(crate) fn allowed(
    config: &Config,
    project: &Path,
    wish: RepairWish,
    may_ask: bool,
) -> Result<Repairs> {
    if wish != RepairWish::Off && may_ask {
        trusting::ask_trust(config, project)?;
    }
    terms(config, project, wish)
}

/// What may be repaired in a project, without asking anybody.
pub(crate) fn terms(config: &Config, project: &Path, wish: RepairWish) -> Result<Repairs> {
    let trust = trusting::standing(config, project);
    let said = config.repairs(trust);
    let section = match (wish, said) {
        (RepairWish::Off, _) | (RepairWish::Configured, None) => return Ok(Repairs::default()),
        (_, None) => RecoverySection::default(),
        (_, Some(section)) => section,
    };
    let untrusted = wider(config, trust, &section);
    let file = project_file(config).filter(|_| !untrusted.is_empty());
    let mut notes: Vec<_> = config
        .distrusted()
        .iter()
        .map(ToString::to_string)
        .collect();
    notes.extend(trusting::untrusted(config, project));
    if !section.enabled {
        return Ok(Repairs {
            terms: None,
            untrusted,
            notes,
        });
    }
    let terms = RepairTerms {
        mode: match wish {
            RepairWish::Ask => RepairMode::Ask,
            _ => RepairMode::Auto,
        },
        rules: rules_of(&section)?,
        untrusted: file,
        sandbox: demand(section.sandbox),
        accepts_incomplete: matches!(
            config.owners_sandbox(),
            Some(Sandbox::BestEffort | Sandbox::Off)
        ),
        network: section.network,
        write_paths: section.allowed_write_paths,
        env_keep: section.env_keep,
        guard_files: section.guard_files,
    };
    Ok(Repairs {
        terms: Some(terms),
        untrusted,
        notes,
    })
}

/// What a command is judged by in a project.
pub(crate) fn rules(config: &Config, project: &Path) -> Result<Rules> {
    let section = config.repairs(trusting::standing(config, project));
    rules_of(&section.unwrap_or_default())
}

fn rules_of(section: &RecoverySection) -> Result<Rules> {
    section.rules().map_err(|error| {
        hinted(
            format!("[recovery]: {error}"),
            "nothing is repaired until that is right; `unstuck config check` looks again",
        )
    })
}

/// What the project would allow beyond what counts, in words.
fn wider(config: &Config, trust: ProjectTrust, counts: &RecoverySection) -> Vec<String> {
    let trusted = match trust {
        ProjectTrust::Trusted => None,
        ProjectTrust::Untrusted => config.repairs(ProjectTrust::Trusted),
    };
    let changes = trusted.map(|trusted| difference(counts, &trusted));
    let wider = changes.into_iter().flatten().filter(|change| change.widens);
    wider
        .map(|change| format!("{}: {}", change.field, change.what))
        .collect()
}

/// The project's own file that says something about repairs.
fn project_file(config: &Config) -> Option<String> {
    let file: &PathBuf = config.project_recovery()?.files.last()?;
    let name = file.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

fn demand(sandbox: Sandbox) -> Demand {
    match sandbox {
        Sandbox::Required => Demand::Required,
        Sandbox::BestEffort => Demand::BestEffort,
        Sandbox::Off => Demand::Off,
    }
}

/// Where a command stands that is only asked about: whether its files are as they were accepted.
pub(crate) fn standing(
    config: &Config,
    root: &Root,
    command: &str,
    working_dir: Option<&str>,
) -> Standing {
    let project = root.path();
    let trust = trusting::standing(config, project);
    let section = config.repairs(trust).unwrap_or_default();
    let untrusted = wider(config, trust, &section);
    let folder = root.folder(working_dir);
    let changed = match folder.ok().filter(|_| section.guard_files) {
        None => Vec::new(),
        Some(folder) => {
            let committed = trusting::committed(Some(project));
            let mut accepted = trusting::accepted_at_start(config, Some(project), &*committed);
            accepted.extend(trusting::accepted(project));
            let files = GuardFiles::new(root, &*committed).accepting(&accepted);
            files.check(command, folder.relative()).changed
        }
    };
    Standing {
        untrusted: project_file(config).filter(|_| !untrusted.is_empty()),
        changed_guard_files: changed.into_iter().map(|file| file.path).collect(),
        ..Standing::default()
    }
}

/// The exit code that tells a verdict.
pub(crate) fn exit_code(verdict: &Verdict) -> ExitCode {
    ExitCode::from(match verdict {
        Verdict::Run(_) => 0,
        Verdict::Ask(_) => 3,
        Verdict::Deny | Verdict::RejectProposal => 1,
    })
}
