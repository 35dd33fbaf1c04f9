//! Whether the project's word about repairs counts, and whether it is a person who says so.

mod ask;
mod project;
mod view;

pub(crate) use ask::{ask_trust, confirmed};
pub(crate) use project::{Project, Word};
pub(crate) use view::{Shown, allowed};

use std::path::Path;

use unstuck_config::ProjectTrust;
use unstuck_core::guard_files::Baseline;
use unstuck_repair::guard_files::{Committed, GuardFiles, NothingCommitted};
use unstuck_repair::place::Root;
use unstuck_repair::trust::Trust;
use unstuck_run::blobs::hash;
use unstuck_run::inside::supervised_agent;
use unstuck_run::worktree::Head;

use crate::config::Config;
use crate::environment;

/// Whether what the project says about repairs counts.
pub(crate) fn standing(config: &Config, project: &Path) -> ProjectTrust {
    Project::new(config, project).word().trust()
}

/// Whether what the project's files say beside `[recovery]` is trusted as it is now.
pub(crate) fn trusts_settings(config: &Config, project: &Path) -> bool {
    let hash = settings_hash(config);
    config.trusts_projects() || store().is_some_and(|trust| trust.trusts_settings(project, &hash))
}

/// The hash of what the project's files say beside `[recovery]`.
fn settings_hash(config: &Config) -> String {
    hash(config.written_settings().content().as_bytes())
}

/// What does not count because nobody has trusted it, why, and what to do; none if all of it counts.
pub(crate) fn untrusted(config: &Config, project: &Path) -> Option<String> {
    let project = Project::new(config, project);
    match project.word() {
        Word::Not(standing) => Some(project.line(&standing)),
        _ => None,
    }
}

/// The guard files of a project as they were accepted.
pub(crate) fn accepted(project: &Path) -> Baseline {
    store()
        .map(|trust| trust.files(project))
        .unwrap_or_default()
}

/// The guard files as they are before anything runs, where the user trusts all projects and nothing else says how they
/// should be: there is no commit, and nobody has accepted any.
pub(crate) fn accepted_at_start(
    config: &Config,
    project: Option<&Path>,
    committed: &dyn Committed,
) -> Baseline {
    let Some(project) = project.filter(|_| config.trusts_projects()) else {
        return Baseline::default();
    };
    let section = config.repairs(ProjectTrust::Trusted);
    let (Some(section), Ok(root)) = (section, Root::open(project)) else {
        return Baseline::default();
    };
    match committed.contents(&[]).is_none() && accepted(project).is_empty() {
        true => GuardFiles::new(&root, committed).baseline(&section.auto_approve),
        false => Baseline::default(),
    }
}

/// Where it is remembered what was trusted.
pub(crate) fn store() -> Option<Trust> {
    environment::state_folder().map(|state| Trust::open(&state))
}

/// Why only a person could do something here: what shows that an agent asks.
pub(crate) fn inside_an_agent() -> Option<String> {
    supervised_agent().map(|inside| inside.to_string())
}

/// The project as it was committed before anything ran: what an agent commits, nobody has accepted.
pub(crate) fn committed(project: Option<&Path>) -> Box<dyn Committed> {
    match project.map(Head::of) {
        Some(Ok(head)) => Box::new(head),
        _ => Box::new(NothingCommitted),
    }
}
