//! Trust in a project's repair rules, and checks that a human grants it.

mod project_trust_state;
mod trust_contents;
mod trust_prompt;

pub(crate) use project_trust_state::{ProjectTrustState, ProjectWithTrustRecord};
pub(crate) use trust_contents::{TrustContents, allowed_lines};
pub(crate) use trust_prompt::{ask_trust, confirm};

use std::path::Path;

use unstuck_config::ProjectTrust;
use unstuck_core::watched_files::WatchedFileBaseline;
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::trust::TrustStore;
use unstuck_repair::watched_files::{LastCommitFiles, NoCommits, WatchedFilesChecker};
use unstuck_run::blobs::content_hash;
use unstuck_run::nested_run_detection::detect_nested_run;
use unstuck_run::worktree::CommittedTree;

use crate::config::Config;
use crate::environment_variables;

/// Returns whether the project's repair rules are trusted.
pub(crate) fn project_trust(config: &Config, project: &Path) -> ProjectTrust {
    ProjectWithTrustRecord::new(config, project)
        .trust_state()
        .as_project_trust()
}

/// True if the project's settings outside `[recovery]` are trusted in their current version.
pub(crate) fn trusts_settings(config: &Config, project: &Path) -> bool {
    let hash = settings_hash(config);
    config.trusts_projects()
        || trust_store().is_some_and(|trust| trust.trusts_settings(project, &hash))
}

/// Returns the hash of the project's settings outside `[recovery]`.
fn settings_hash(config: &Config) -> String {
    content_hash(config.written_settings().canonical_text().as_bytes())
}

/// Describes the ignored untrusted rules, with the reason and a hint; none if all apply.
pub(crate) fn untrusted_notice(config: &Config, project: &Path) -> Option<String> {
    let project = ProjectWithTrustRecord::new(config, project);
    match project.trust_state() {
        ProjectTrustState::Untrusted(standing) => Some(project.untrusted_line(&standing)),
        _ => None,
    }
}

/// Returns the accepted watched files of a project.
pub(crate) fn accepted_files(project: &Path) -> WatchedFileBaseline {
    trust_store()
        .map(|trust| trust.accepted_files(project))
        .unwrap_or_default()
}

/// Returns the watched files before anything runs, if the user trusts all projects and there is no other baseline: no
/// commit, and nothing accepted.
pub(crate) fn files_at_start(
    config: &Config,
    project: Option<&Path>,
    committed: &dyn LastCommitFiles,
) -> WatchedFileBaseline {
    let Some(project) = project.filter(|_| config.trusts_projects()) else {
        return WatchedFileBaseline::default();
    };
    let section = config.repair_policy(ProjectTrust::Trusted);
    let (Some(section), Ok(root)) = (section, ProjectRoot::open(project)) else {
        return WatchedFileBaseline::default();
    };
    if committed.contents(&[]).is_none() && accepted_files(project).is_empty() {
        WatchedFilesChecker::new(&root, committed).baseline(&section.auto_approve)
    } else {
        WatchedFileBaseline::default()
    }
}

/// Returns the store of trust records.
pub(crate) fn trust_store() -> Option<TrustStore> {
    environment_variables::state_dir().map(|state| TrustStore::open(&state))
}

/// Returns evidence that this process was started by an agent, if any.
pub(crate) fn agent_evidence() -> Option<String> {
    detect_nested_run().map(|inside| inside.to_string())
}

/// Returns the project's files at the last commit before the start; later commits of agents are not accepted.
pub(crate) fn committed_files(project: Option<&Path>) -> Box<dyn LastCommitFiles> {
    match project.map(CommittedTree::at_head) {
        Some(Ok(head)) => Box::new(head),
        _ => Box::new(NoCommits),
    }
}
