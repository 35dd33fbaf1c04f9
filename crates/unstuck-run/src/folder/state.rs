//! `state.json` and `escalation.json`: where a run stands, for people and other programs.

use serde::Serialize;
use serde_json::{Value, json};
use unstuck_core::episode::Status;
use unstuck_core::event::RecoveryEscalated;
use unstuck_core::{Kind, Recorded, Recovery, RunView, Timestamp};

/// Where a run stands.
#[derive(Debug, Serialize)]
pub(super) struct State<'a> {
    run: &'a str,
    status: Status,
    project: &'a str,
    command: &'a [String],
    started: Timestamp,
    updated: Timestamp,
    until: Option<Timestamp>,
    reason: Option<&'a str>,
    cost_usd: f64,
    sessions: [Session<'a>; 1],
}

#[derive(Debug, Serialize)]
struct Session<'a> {
    id: &'a str,
    agent: Option<&'a str>,
    model: Option<&'a str>,
    attempts: u32,
    retry_count: u32,
    error_count: u32,
    is_hiccup: bool,
    last_error: Option<Kind>,
}

impl<'a> State<'a> {
    pub(super) fn of(view: &'a RunView, recovery: &'a Recovery) -> Self {
        Self {
            run: view.id.as_str(),
            status: view.status,
            project: &view.project,
            command: &view.command,
            started: view.started,
            updated: view.updated,
            until: view.until,
            reason: view.reason.as_deref(),
            cost_usd: view.cost_usd,
            sessions: [Session {
                id: recovery.run().session.as_str(),
                agent: view.agent.as_deref(),
                model: view.model.as_deref(),
                attempts: view.attempts,
                retry_count: view.retry_count,
                error_count: view.error_count,
                is_hiccup: view.is_hiccup,
                last_error: view.kind,
            }],
        }
    }
}

/// A question to a person.
#[derive(Debug, Serialize)]
pub(super) struct Escalation<'a> {
    timestamp: Timestamp,
    loop_id: &'a str,
    iteration: u32,
    #[serde(flatten)]
    asked: &'a RecoveryEscalated,
    status: &'static str,
    recovery_proposal: Value,
    evidence: Option<&'a str>,
    hint: Option<&'a str>,
    actions: Value,
}

impl<'a> Escalation<'a> {
    pub(super) fn of(
        recorded: &'a Recorded,
        asked: &'a RecoveryEscalated,
        recovery: &'a Recovery,
    ) -> Self {
        let failed = recovery.failure();
        let run = recorded.run.as_str();
        Self {
            timestamp: recorded.at,
            loop_id: run,
            iteration: recovery.attempts(),
            asked,
            status: "pending",
            recovery_proposal: json!(asked.proposed),
            evidence: failed.map(|failed| &*failed.diagnosis.evidence.line),
            hint: failed.map(|failed| &*failed.diagnosis.hint),
            actions: json!({
                "manual": format!("unstuck resume {run}"),
                "explain": format!("unstuck explain {run}"),
            }),
        }
    }
}
