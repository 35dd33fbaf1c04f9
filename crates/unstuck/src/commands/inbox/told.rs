//! A question as JSON: all that is needed to answer it, with the command line of every answer.

use serde::Serialize;
use serde_json::{Value, json};
use unstuck_core::decision::{CostEstimate, RereadCost};
use unstuck_core::question::{Answer, Deadline, Tried, offered};
use unstuck_core::settings::SettingChange;
use unstuck_core::{Kind, Timestamp};
use unstuck_store::Question;

use crate::session::Session;

/// A question that waits.
#[derive(Debug, Serialize)]
pub(super) struct Told<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    question: &'static str,
    trigger: &'a str,
    run: &'a str,
    project: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    kind: Kind,
    #[serde(rename = "doing")]
    doing: &'a str,
    evidence: &'a str,
    reason: &'a str,
    #[serde(rename = "tried")]
    tried: &'a [Tried],
    /// What the project's files say differently than when the run began.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    settings: &'a [SettingChange],
    proposal: Value,
    cost: Option<Cost<'a>>,
    /// What it costs to wake the conversation, where an answer continues one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reread: Option<RereadCost>,
    answers: Vec<Offered>,
    created: Timestamp,
    deadline: Option<Deadline>,
}

/// What is proposed costs so much more.
#[derive(Debug, Serialize)]
struct Cost<'a> {
    usd: Option<f64>,
    formula: &'a str,
}

/// An answer that makes sense.
#[derive(Debug, Serialize)]
struct Offered {
    answer: &'static str,
    key: char,
    #[serde(rename = "does")]
    does: String,
    command: String,
}

impl<'a> Told<'a> {
    pub(super) fn of(question: &'a Question, session: &Session<'_>) -> Self {
        let asked = &question.asked;
        let shown = &asked.shown;
        let offered = offered(asked).into_iter();
        Self {
            id: &asked.id,
            question: asked.question.name(),
            trigger: &asked.trigger,
            run: question.run.as_str(),
            project: &question.project,
            role: shown.role.as_deref(),
            kind: asked.kind,
            doing: &shown.doing,
            evidence: &shown.evidence,
            reason: &asked.reason,
            tried: &shown.tried,
            settings: &shown.settings,
            proposal: match &shown.command {
                Some(command) => json!({ "command": command }),
                None => json!(asked.proposed),
            },
            cost: asked.cost.as_ref().map(Cost::of),
            reread: shown.reread,
            answers: offered
                .map(|choice| Offered {
                    answer: choice.answer.name(),
                    key: choice.answer.key(),
                    command: command(choice.answer, &asked.id, session),
                    does: choice.does,
                })
                .collect(),
            created: question.at,
            deadline: shown.deadline,
        }
    }
}

impl<'a> Cost<'a> {
    fn of(estimate: &'a CostEstimate) -> Self {
        Self {
            usd: estimate.usd(),
            formula: &estimate.formula,
        }
    }
}

/// The command line that gives an answer.
pub(super) fn command(answer: Answer, id: &str, session: &Session<'_>) -> String {
    let words = match answer {
        Answer::Retry => " --note \"YOUR WORDS\"",
        _ => "",
    };
    session.line(&format!("{answer} {id}{words}"))
}
