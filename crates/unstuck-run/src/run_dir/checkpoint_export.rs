//! `checkpoint.json`: the completed and the failed work, for users and tools; a run resumes from its events.

use std::collections::BTreeMap;

use serde::Serialize;
use unstuck_core::views::{RunProjection, SessionSummary};
use unstuck_core::{FailureKind, Timestamp};

/// The completed and the failed work.
#[derive(Debug, Serialize)]
pub(super) struct CheckpointFile<'a> {
    timestamp: Timestamp,
    completed_agents: Vec<&'a str>,
    failed_agent: Option<&'a str>,
    outputs: BTreeMap<String, String>,
    config_path: Option<&'a str>,
    workspace: &'a str,
    run: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    iteration: Option<u32>,
    error_type: Option<FailureKind>,
    retry_count: u32,
    agent_session: Option<&'a str>,
    resume: String,
}

impl<'a> CheckpointFile<'a> {
    /// Returns the checkpoint of a run; `output` returns the output of a role with this number of instances.
    pub(super) fn from_run(
        run: &'a RunProjection,
        at: Timestamp,
        output: &dyn Fn(&str, u32) -> String,
    ) -> Self {
        let failed = failed_session(run);
        let pipeline = run.pipeline.as_ref();
        let completed = pipeline.map_or_else(Vec::new, |pipeline| pipeline.completed_roles());
        let roles = pipeline.map_or(&[][..], |pipeline| &pipeline.plan().roles);
        let done = roles
            .iter()
            .filter(|role| completed.contains(&role.id.as_str()));
        Self {
            timestamp: at,
            outputs: done
                .map(|role| (role.id.clone(), output(&role.id, role.instances)))
                .collect(),
            failed_agent: failed.map(|session| match &session.part {
                Some(part) => part.role.as_str(),
                None => session.id.as_str(),
            }),
            completed_agents: completed,
            config_path: config_path(run),
            workspace: run.run.cwd(),
            run: run.summary.id.as_str(),
            iteration: run.summary.iteration,
            error_type: failed.and_then(|session| session.last_error),
            retry_count: failed.map_or(0, |session| session.retry_count),
            agent_session: failed.and_then(|session| session.conversation.as_deref()),
            resume: format!("unstuck resume {}", run.summary.id),
        }
    }
}

/// Returns the failed session; of a pipeline, the first one that is not completed.
fn failed_session(run: &RunProjection) -> Option<&SessionSummary> {
    let Some(pipeline) = &run.pipeline else {
        return run.sessions.first();
    };
    let is_needed = |role: &str| pipeline.role(role).is_some_and(|role| !role.optional);
    let stopped = pipeline.stopped_instances().map(|(part, _)| part);
    let stopped: Vec<_> = stopped.filter(|part| is_needed(&part.role)).collect();
    let is_it = |session: &&SessionSummary| {
        let part = session.part.as_ref();
        part.is_some_and(|part| stopped.contains(&part))
    };
    run.sessions.iter().find(is_it)
}

/// Returns the file that defines the roles or the policy, if there is one.
fn config_path(run: &RunProjection) -> Option<&str> {
    if let Some(pipeline) = &run.pipeline {
        return pipeline.plan().config_path.as_deref();
    }
    let origins = &run.run.sole_session()?.origins;
    origins.get("policy")?.strip_prefix("[policy] in ")
}
