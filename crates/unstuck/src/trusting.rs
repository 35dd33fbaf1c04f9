//! Whether the project's word about repairs counts, and whether it is a person who says so.

use std::path::Path;

use unstuck_config::ProjectTrust;
use unstuck_core::guard_files::Baseline;
use unstuck_repair::trust::{Standing, Trust};
use unstuck_run::inside::supervised_agent;

use crate::config::Config;
use crate::environment;

/// Whether what the project says about repairs counts.
pub(crate) fn standing(config: &Config, project: &Path) -> ProjectTrust {
    let Some(said) = config.project_recovery() else {
        return ProjectTrust::Trusted;
    };
    if config.trusts_projects() {
        return ProjectTrust::Trusted;
    }
    let record = store().map(|trust| trust.standing(project, &said.hash()));
    match record {
        Some(Standing::Trusted) => ProjectTrust::Trusted,
        _ => ProjectTrust::Untrusted,
    }
}

/// The guard files of a project as they were accepted.
pub(crate) fn accepted(project: &Path) -> Baseline {
    store()
        .map(|trust| trust.files(project))
        .unwrap_or_default()
}

/// Where it is remembered what was trusted.
pub(crate) fn store() -> Option<Trust> {
    environment::state_folder().map(|state| Trust::open(&state))
}

/// Why only a person could do something here: what shows that an agent asks.
pub(crate) fn inside_an_agent() -> Option<String> {
    supervised_agent().map(|inside| inside.to_string())
}
