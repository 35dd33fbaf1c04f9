//! `checkpoint.json`: what was done and what failed, from which a run is taken up again.

use std::collections::BTreeMap;

use serde::Serialize;
use unstuck_core::{Kind, Recovery, Timestamp};

/// What was done and what failed.
#[derive(Debug, Serialize)]
pub(super) struct Checkpoint<'a> {
    timestamp: Timestamp,
    completed_agents: [&'a str; 0],
    failed_agent: &'a str,
    outputs: BTreeMap<String, String>,
    config_path: Option<&'a str>,
    workspace: &'a str,
    run: &'a str,
    error_type: Option<Kind>,
    retry_count: usize,
    agent_session: Option<&'a str>,
    resume: String,
}

impl<'a> Checkpoint<'a> {
    pub(super) fn of(recovery: &'a Recovery, at: Timestamp) -> Self {
        let run = recovery.run();
        let failed = recovery.failure();
        let used = recovery.end().map(|end| &end.used);
        let history = recovery.history();
        Self {
            timestamp: at,
            completed_agents: [],
            failed_agent: run.session.as_str(),
            outputs: BTreeMap::new(),
            config_path: config_of(run.origins.get("policy")),
            workspace: &run.cwd,
            run: recovery.id().as_str(),
            error_type: failed.map(|failed| failed.diagnosis.kind),
            retry_count: history.map_or(0, |history| history.attempts.len()),
            agent_session: used.and_then(|used| used.agent_session.as_deref()),
            resume: format!("unstuck resume {}", recovery.id()),
        }
    }
}

/// The file that the policy comes from, where it comes from one.
fn config_of(origin: Option<&String>) -> Option<&str> {
    origin?.strip_prefix("[policy] in ")
}
