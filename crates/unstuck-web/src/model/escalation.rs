//! A question to a person: all that is needed to answer it in one look, and the answer.

use serde::{Deserialize, Serialize};
use unstuck_core::decision::Changed;
use unstuck_core::event::RepairConditions;
use unstuck_core::repair::needs_network;
use unstuck_core::settings::SettingChange;
use unstuck_core::{Kind, Timestamp, question};
use unstuck_store::Question;
use utoipa::ToSchema;

use super::attempt::Resolved;
use super::estimate::Estimate;
use super::money::rounded;
use super::project::project_id;
use super::reread::Reread;
use super::schema;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Escalation {
    /// Its id.
    pub id: String,
    /// What kind of question it is.
    #[serde(rename = "type")]
    #[schema(schema_with = schema::question)]
    pub question: String,
    /// What made unstuck ask, `HICCUP` for instance.
    pub trigger: String,
    /// The run that asks.
    pub run: String,
    /// The session that it is about, where it is about one.
    pub session: Option<String>,
    /// The root folder of its project.
    pub project: String,
    /// The id of its project.
    pub project_id: String,
    /// The role that it is about, where it is about one.
    pub role: Option<String>,
    /// The kind of failure that it is about.
    #[schema(schema_with = schema::kind)]
    pub kind: Kind,
    /// What was being done.
    #[serde(rename = "doing")]
    pub doing: String,
    /// The line of the failure that tells most.
    pub evidence: String,
    /// Why a person is needed, in one sentence.
    pub reason: String,
    /// What was tried before, and why it did not help.
    #[serde(rename = "tried")]
    pub tried: Vec<Tried>,
    /// What the project's files say differently than when the run began, where it is about that.
    pub settings: Vec<ChangedSetting>,
    /// The command that is proposed, where one is.
    pub command: Option<String>,
    /// Under which conditions the command would run, where it is about a repair.
    pub conditions: Option<Conditions>,
    /// What else is proposed, in words.
    pub proposed: Option<String>,
    /// What that is expected to cost more.
    pub cost: Option<Estimate>,
    /// Whether there are file changes to look at before answering.
    pub can_preview: bool,
    /// Whether a preview of the command probably fails without network.
    pub preview_needs_network: bool,
    /// The answers that make sense, the likeliest first.
    pub answers: Vec<Offered>,
    /// What it costs to wake the conversation, where an answer continues one.
    pub reread: Option<Reread>,
    /// When it was asked.
    #[schema(value_type = String, format = DateTime)]
    pub created: Timestamp,
    /// What counts as answered when nobody answers in time.
    pub deadline: Option<Deadline>,
    /// The same failure has the same fingerprint.
    pub fingerprint: String,
    /// What an answer binds to: send it back with the answer, so that what was shown is what is answered.
    pub hash: String,
    /// What was answered; null while it waits.
    #[serde(rename = "answered")]
    pub answered: Option<Answered>,
}

impl From<Question> for Escalation {
    fn from(question: Question) -> Self {
        let answers = question::offered(&question.asked).into_iter();
        let asked = question.asked;
        let proposed = asked.proposed.as_ref();
        let shown = asked.shown;
        Self {
            answers: answers.map(Offered::from).collect(),
            question: asked.question.name().to_owned(),
            trigger: asked.trigger,
            run: question.run.as_str().to_owned(),
            session: asked.session.map(|session| session.as_str().to_owned()),
            project_id: project_id(&question.project),
            project: question.project,
            role: shown.role,
            kind: asked.kind,
            doing: shown.doing,
            evidence: shown.evidence,
            reason: asked.reason,
            tried: shown.tried.into_iter().map(Tried::from).collect(),
            settings: shown
                .settings
                .into_iter()
                .map(ChangedSetting::from)
                .collect(),
            proposed: proposed.and_then(|one| in_words(&one.strategy, &one.changes)),
            cost: asked.cost.as_ref().map(|cost| {
                let models = proposed.and_then(|one| one.changes.iter().find_map(Changed::model));
                Estimate::of(cost, models)
            }),
            reread: shown.reread.map(Reread::from),
            can_preview: asked.repair.is_some(),
            preview_needs_network: shown.command.as_deref().is_some_and(needs_network),
            command: shown.command,
            conditions: shown.conditions.map(Conditions::from),
            created: question.at,
            deadline: shown.deadline.map(Deadline::from),
            fingerprint: shown.fingerprint,
            hash: shown.hash,
            id: asked.id,
            answered: question.answered.map(|answered| Answered {
                at: answered.at,
                how: answered.answer.map(Resolved::from),
            }),
        }
    }
}

/// Under which conditions a repair would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conditions {
    /// How far it would be confined: `full`, `partial` or `none`.
    pub sandbox: String,
    /// What is missing for a complete sandbox.
    pub missing: Vec<String>,
    /// Whether it would reach the network.
    pub network: bool,
    /// The names of the environment variables that it would see.
    pub variables: Vec<String>,
    /// What it is known to change where git would obey it.
    pub effects: Vec<String>,
}

impl From<RepairConditions> for Conditions {
    fn from(of: RepairConditions) -> Self {
        Self {
            sandbox: of.sandbox,
            missing: of.missing,
            network: of.network,
            variables: of.variables,
            effects: of.effects,
        }
    }
}

/// The strategy that is to ask a person, which is being done.
const ASK: &str = "ask_user";

/// What is proposed, where it is no command.
fn in_words(strategy: &str, changes: &[Changed]) -> Option<String> {
    let models = changes.iter().filter_map(Changed::model);
    let models: Vec<_> = models
        .map(|(from, to)| format!("the model {to} in place of {from}"))
        .collect();
    match models.is_empty() {
        true => Some(strategy.replace('_', " ")).filter(|_| strategy != ASK),
        false => Some(models.join(", ")),
    }
}

/// Something that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Tried {
    /// What.
    pub what: String,
    /// Why it did not help.
    pub why: String,
}

impl From<question::Tried> for Tried {
    fn from(tried: question::Tried) -> Self {
        Self {
            what: tried.what,
            why: tried.why,
        }
    }
}

/// A setting of the project that was changed, and does not count until that is approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangedSetting {
    /// Its path, such as `role.builder.command`.
    pub key: String,
    /// What it was, as JSON; null if there was nothing.
    pub before: Option<String>,
    /// What it is in the file now, as JSON; null if there is nothing.
    pub now: Option<String>,
}

impl From<SettingChange> for ChangedSetting {
    fn from(change: SettingChange) -> Self {
        Self {
            key: change.key,
            before: change.before,
            now: change.now,
        }
    }
}

/// An answer that makes sense.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Offered {
    /// The answer.
    pub answer: Answer,
    /// What will happen.
    #[serde(rename = "does")]
    pub does: String,
    /// What that is expected to cost more, in USD, where it is known.
    pub cost_usd: Option<f64>,
}

impl From<question::Choice> for Offered {
    fn from(choice: question::Choice) -> Self {
        Self {
            answer: choice.answer.into(),
            does: choice.does,
            cost_usd: choice.cost.map(rounded),
        }
    }
}

/// What a person can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Do what is proposed.
    Approve,
    /// Do not do it, and go on.
    Reject,
    /// It was seen to by hand: go on.
    Resolve,
    /// Again, with their words.
    Retry,
    /// Again, with a stronger model.
    Escalate,
    /// Leave this part out, and go on without it.
    Skip,
    /// End the run.
    Abort,
}

impl From<question::Answer> for Answer {
    fn from(answer: question::Answer) -> Self {
        match answer {
            question::Answer::Approve => Self::Approve,
            question::Answer::Reject => Self::Reject,
            question::Answer::Resolve => Self::Resolve,
            question::Answer::Retry => Self::Retry,
            question::Answer::Escalate => Self::Escalate,
            question::Answer::Skip => Self::Skip,
            question::Answer::Abort => Self::Abort,
        }
    }
}

impl From<Answer> for question::Answer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Approve => Self::Approve,
            Answer::Reject => Self::Reject,
            Answer::Resolve => Self::Resolve,
            Answer::Retry => Self::Retry,
            Answer::Escalate => Self::Escalate,
            Answer::Skip => Self::Skip,
            Answer::Abort => Self::Abort,
        }
    }
}

/// What counts as answered when nobody answers in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    /// When the time is over.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The answer that counts then.
    pub answer: Answer,
}

impl From<question::Deadline> for Deadline {
    fn from(deadline: question::Deadline) -> Self {
        Self {
            at: deadline.at,
            answer: deadline.answer.into(),
        }
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What; null where it has come to nothing because the run went on or ended.
    #[serde(rename = "how")]
    pub how: Option<Resolved>,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerGiven {
    /// The answer.
    pub answer: Answer,
    /// Why, for those who read the history; for `retry` what is to be done otherwise.
    #[serde(default)]
    #[schema(max_length = 20000)]
    pub note: String,
    /// The hash of the question that was shown; where it is given, nothing else is answered.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub hash: Option<String>,
}

/// What follows from an answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerTaken {
    /// The question, answered.
    pub escalation: Escalation,
    /// What happens now, in one sentence.
    #[serde(rename = "doing")]
    pub doing: String,
}

/// What a proposed command would change, tried out on a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The command.
    pub command: String,
    /// Whether it could use the network.
    pub network: bool,
    /// Its exit code; null where it did not come to its end.
    pub exit_code: Option<i32>,
    /// The end of what it wrote.
    pub output: String,
    /// The files that it would change.
    pub files: Vec<PreviewedFile>,
    /// Whether there are more of them than are told.
    pub more: bool,
    /// What cannot be told of it, in words.
    pub notes: Vec<String>,
}

/// A file that would be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewedFile {
    /// Its path in the project.
    pub path: String,
    /// What happens to it: `added`, `changed` or `removed`.
    pub change: String,
    /// The difference, as a unified diff; empty where it cannot be shown.
    pub diff: String,
}
