//! An escalation in JSON form, with the command line of every answer.

use serde::Serialize;
use serde_json::{Value, json};
use unstuck_core::decision::{CostEstimate, RereadCost};
use unstuck_core::escalation::{
    EscalationAnswer, EscalationDeadline, EscalationPriorAttempt, offered_options,
};
use unstuck_core::project_settings_snapshot::ProjectSettingChange;
use unstuck_core::{FailureKind, Timestamp};
use unstuck_store::EscalationRow;

use crate::command_context::CommandContext;

/// A pending escalation.
#[derive(Debug, Serialize)]
pub(super) struct EscalationJson<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    escalation_kind: &'static str,
    trigger: &'a str,
    run: &'a str,
    project: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    kind: FailureKind,
    activity: &'a str,
    evidence: &'a str,
    reason: &'a str,
    prior_attempts: &'a [EscalationPriorAttempt],
    /// Settings in the project's files that changed since the run began.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    settings: &'a [ProjectSettingChange],
    proposal: Value,
    cost: Option<CostJson<'a>>,
    /// Cost of re-reading the conversation, if an answer continues one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reread: Option<RereadCost>,
    answers: Vec<AnswerOptionJson>,
    created: Timestamp,
    deadline: Option<EscalationDeadline>,
}

/// Additional cost of the proposal.
#[derive(Debug, Serialize)]
struct CostJson<'a> {
    usd: Option<f64>,
    formula: &'a str,
}

/// An available answer.
#[derive(Debug, Serialize)]
struct AnswerOptionJson {
    answer: &'static str,
    key: char,
    effect: String,
    command: String,
}

impl<'a> EscalationJson<'a> {
    pub(super) fn from_escalation(
        question: &'a EscalationRow,
        session: &CommandContext<'_>,
    ) -> Self {
        let asked = &question.request;
        let shown = &asked.details;
        let offered = offered_options(asked).into_iter();
        Self {
            id: &asked.id,
            escalation_kind: asked.escalation_kind.name(),
            trigger: &asked.trigger,
            run: question.run.as_str(),
            project: &question.project,
            role: shown.role.as_deref(),
            kind: asked.kind,
            activity: &shown.activity,
            evidence: &shown.evidence,
            reason: &asked.reason,
            prior_attempts: &shown.prior_attempts,
            settings: &shown.settings,
            proposal: match &shown.command {
                Some(command) => json!({ "command": command }),
                None => json!(asked.proposed),
            },
            cost: asked.cost.as_ref().map(CostJson::from_estimate),
            reread: shown.reread,
            answers: offered
                .map(|choice| AnswerOptionJson {
                    answer: choice.answer.name(),
                    key: choice.answer.key(),
                    command: answer_command(choice.answer, &asked.id, session),
                    effect: choice.effect,
                })
                .collect(),
            created: question.at,
            deadline: shown.deadline,
        }
    }
}

impl<'a> CostJson<'a> {
    fn from_estimate(estimate: &'a CostEstimate) -> Self {
        Self {
            usd: estimate.usd(),
            formula: &estimate.formula,
        }
    }
}

/// Returns the command line that gives an answer.
pub(super) fn answer_command(
    answer: EscalationAnswer,
    id: &str,
    session: &CommandContext<'_>,
) -> String {
    let words = match answer {
        EscalationAnswer::Retry => " --note \"MESSAGE\"",
        _ => "",
    };
    session.unstuck_command(&format!("{answer} {id}{words}"))
}
