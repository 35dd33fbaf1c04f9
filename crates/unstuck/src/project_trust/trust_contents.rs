//! Describes the trusted content for review.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use unstuck_config::section::{OnUnlistedCommand, RepairPolicySection, SandboxModeSetting};
use unstuck_config::{RepairPolicyChange, lint_approval};
use unstuck_core::command_policy::{sanitize, sanitize_command};
use unstuck_core::watched_files::WatchedFileBaseline;
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::watched_files::{UnacceptedWatchedFile, WatchedFilesChecker};
use unstuck_run::worktree::open_committed_files;

use super::ProjectWithTrustRecord;

/// Maximum number of diff lines per file.
const MOST_LINES: usize = 12;
/// Maximum number of file names in a line.
const MOST_NAMES: usize = 12;

/// Content that is trusted with a project.
#[derive(Debug, Serialize)]
pub(crate) struct TrustContents {
    /// Rules that would apply.
    pub(crate) section: RepairPolicySection,
    /// Warnings for the owner, by entry.
    pub(crate) warnings: Vec<String>,
    /// Watched files in their current state.
    #[serde(skip)]
    pub(crate) baseline: WatchedFileBaseline,
    /// Names of the watched files.
    pub(crate) files: Vec<String>,
    /// Watched files that differ from both the committed and the accepted versions.
    pub(crate) changed: Vec<UnacceptedWatchedFile>,
}

impl TrustContents {
    /// Inspects a project; none if there are no repair rules.
    pub(crate) fn of_project(project: &ProjectWithTrustRecord<'_>) -> Result<Option<Self>> {
        let Some(section) = project.declared_section() else {
            return Ok(None);
        };
        let root = ProjectRoot::open(&project.root)?;
        let head = open_committed_files(&project.root);
        let accepted = super::accepted_files(&project.root);
        let files = WatchedFilesChecker::new(&root, head.as_ref());
        let baseline = files.baseline(&section.auto_approve);
        let files = files.with_baseline(&accepted);
        let mut changed: Vec<UnacceptedWatchedFile> = Vec::new();
        for command in &section.auto_approve {
            for file in files.check(command, Path::new("")).changed {
                if !changed.contains(&file) {
                    changed.push(file);
                }
            }
        }
        Ok(Some(Self {
            warnings: warnings(&section),
            files: baseline.0.keys().map(|path| sanitize(path)).collect(),
            section,
            baseline,
            changed,
        }))
    }

    /// Lists the watched files that decide what the commands execute.
    pub(crate) fn file_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.files.is_empty() {
            let shown = self.files.iter().take(MOST_NAMES).cloned();
            let mut names = shown.collect::<Vec<_>>().join(", ");
            if self.files.len() > MOST_NAMES {
                names += &format!(" and {} more", self.files.len() - MOST_NAMES);
            }
            lines.push(format!("Files that determine what they execute: {names}"));
        }
        for file in &self.changed {
            lines.push(format!("  {}: {}", file.path, file.reason));
            let all: Vec<_> = file.diff.lines().collect();
            lines.extend(
                all.iter()
                    .take(MOST_LINES)
                    .map(|line| format!("      {line}")),
            );
            if all.len() > MOST_LINES {
                lines.push(format!("      … and {} more lines", all.len() - MOST_LINES));
            }
        }
        lines
    }
}

fn warnings(section: &RepairPolicySection) -> Vec<String> {
    let told = section.auto_approve.iter().flat_map(|entry| {
        let why = lint_approval(entry).into_iter();
        why.map(move |why| format!("`{}` {why}", sanitize_command(entry)))
    });
    told.collect()
}

/// Lists what a section allows.
pub(crate) fn allowed_lines(section: &RepairPolicySection) -> Vec<String> {
    if !section.enabled {
        return vec!["Repairs are disabled".to_owned()];
    }
    let mut lines = Vec::new();
    match section.auto_approve.as_slice() {
        [] => lines.push("No command runs without approval".to_owned()),
        entries => {
            lines.push("These commands run without approval (exact match only):".to_owned());
            lines.extend(
                entries
                    .iter()
                    .map(|entry| format!("  {}", sanitize_command(entry))),
            );
        }
    }
    let patterns: Vec<_> = section
        .require_human
        .iter()
        .map(|one| sanitize(one))
        .collect();
    if !patterns.is_empty() {
        lines.push(format!(
            "These always need approval: {}",
            patterns.join("   ")
        ));
    }
    lines.push(match section.on_unknown {
        OnUnlistedCommand::Escalate => "All other commands need approval".to_owned(),
        OnUnlistedCommand::Deny => "All other commands are rejected".to_owned(),
        OnUnlistedCommand::Allow => "All other simple commands run without approval".to_owned(),
    });
    lines.push(format!(
        "At most {} automatic repairs per run, at least {} s apart",
        section.max_auto_recoveries_per_run, section.cooldown_seconds
    ));
    lines.push(confinement_text(section));
    if !section.guard_files {
        lines.push("Changed scripts and tool settings do not require approval".to_owned());
    }
    lines
}

fn confinement_text(section: &RepairPolicySection) -> String {
    let sandbox = match section.sandbox {
        SandboxModeSetting::Required => "only in a sandbox",
        SandboxModeSetting::BestEffort => "in a sandbox if available",
        SandboxModeSetting::Off => "without a sandbox",
    };
    let network = if section.network {
        "with network access"
    } else {
        "without network access"
    };
    let paths: Vec<_> = section
        .allowed_write_paths
        .iter()
        .map(|path| sanitize(&path.display().to_string()))
        .collect();
    let writes = if paths.is_empty() {
        String::new()
    } else {
        format!(", writing only to {}", paths.join(", "))
    };
    let kept: Vec<_> = section.env_keep.iter().map(|name| sanitize(name)).collect();
    let variables = if kept.is_empty() {
        String::new()
    } else {
        format!(", with environment variables {}", kept.join(", "))
    };
    format!("Repairs run {sandbox}, {network}{writes}{variables}")
}

/// Lists the changes, one line each; those that allow more are marked.
pub(super) fn change_lines(changes: &[RepairPolicyChange]) -> Vec<String> {
    let line = |change: &RepairPolicyChange| {
        let mark = if change.widens { '+' } else { '-' };
        format!("  {mark} {}", sanitize(&change.description))
    };
    changes.iter().map(line).collect()
}
