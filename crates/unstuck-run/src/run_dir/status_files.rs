//! `state.json` and `escalation.json`: the state of a run, for users and other programs.

use serde::Serialize;
use serde_json::{Value, json};
use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::event::EscalationOpened;
use unstuck_core::repair::needs_network;
use unstuck_core::views::{RunProjection, RunStatus, SessionSummary};
use unstuck_core::{EventRecord, Timestamp};

/// The state of a run.
#[derive(Debug, Serialize)]
pub(super) struct RunStateFile<'a> {
    run: &'a str,
    status: RunStatus,
    project: &'a str,
    command: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iteration: Option<u32>,
    started: Timestamp,
    updated: Timestamp,
    until: Option<Timestamp>,
    reason: Option<&'a str>,
    cost_usd: Option<f64>,
    sessions: &'a [SessionSummary],
}

impl<'a> RunStateFile<'a> {
    pub(super) fn from_run(run: &'a RunProjection) -> Self {
        let view = &run.summary;
        Self {
            run: view.id.as_str(),
            status: view.status,
            project: &view.project,
            command: &view.command,
            task: view.task.as_deref(),
            iteration: view.iteration,
            started: view.started,
            updated: view.updated,
            until: view.until,
            reason: view.reason.as_deref(),
            cost_usd: run.known_cost(),
            sessions: &run.sessions,
        }
    }
}

/// An escalation.
#[derive(Debug, Serialize)]
pub(super) struct EscalationFile<'a> {
    timestamp: Timestamp,
    loop_id: &'a str,
    iteration: u32,
    #[serde(flatten)]
    escalation: &'a EscalationOpened,
    status: &'static str,
    recovery_proposal: Value,
    hint: Option<&'a str>,
    actions: Value,
}

impl<'a> EscalationFile<'a> {
    pub(super) fn from_event(
        recorded: &'a EventRecord,
        escalation: &'a EscalationOpened,
        run: &'a RunProjection,
    ) -> Self {
        let session = run.session(escalation.session.as_ref());
        let failed = session.and_then(|session| session.diagnosis.as_deref());
        let iteration = match &run.pipeline {
            Some(pipeline) => pipeline.iteration(),
            None => session.map_or(0, |session| session.attempts),
        };
        let repair = escalation.repair.as_deref();
        let repair = repair.and_then(|repair| run.repairs.get(repair));
        let proposal = repair.map(|repair| &repair.proposed);
        let run = recorded.run.as_str();
        Self {
            timestamp: recorded.at,
            loop_id: run,
            iteration,
            escalation,
            status: "pending",
            recovery_proposal: match proposal {
                Some(proposal) => json!(proposal),
                None => json!(escalation.proposed),
            },
            hint: failed.map(|failed| &*failed.hint),
            actions: answer_commands(escalation, run),
        }
    }
}

/// Returns a command line for every answer, and for everything to inspect first.
fn answer_commands(asked: &EscalationOpened, run: &str) -> Value {
    let id = &asked.id;
    let answers = asked.details.options.iter().map(|choice| {
        let answer = choice.answer;
        let words = match answer {
            EscalationAnswer::Retry => " --note 'MESSAGE'",
            _ => "",
        };
        let line = format!("unstuck {answer} {id}{words}");
        (answer.method().to_owned(), Value::from(line))
    });
    let mut actions: serde_json::Map<String, Value> = answers.collect();
    if asked.repair.is_some() {
        let command = asked.details.command.as_deref().unwrap_or_default();
        let network = if needs_network(command) {
            " --network"
        } else {
            ""
        };
        let line = format!("unstuck preview {id}{network}");
        actions.insert("preview".into(), line.into());
    }
    actions.insert("explain".into(), format!("unstuck explain {run}").into());
    Value::Object(actions)
}
