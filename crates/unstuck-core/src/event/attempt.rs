//! Events about one try of a session.

use serde::{Deserialize, Serialize};

use super::id::SessionId;
use crate::decision::TokenUsage;
use crate::diagnosis::Diagnosis;
use crate::failure::{Failure, Kind, Layer, Level};
use crate::planner::shell_quote;
use crate::time::Timestamp;

/// What an attempt is an answer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptCause {
    /// The kind of the failure before.
    pub kind: Kind,
    /// The level of the answer.
    pub level: Level,
    /// The strategy, where one of the chain was used.
    #[serde(default)]
    pub strategy: Option<String>,
}

/// One try began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptStarted {
    /// The session that it belongs to.
    pub session: SessionId,
    /// Its number in the session, from 1.
    pub number: u32,
    /// The command line, as it was changed for this attempt.
    pub command: Vec<String>,
    /// The model that it uses, as far as is known.
    #[serde(default)]
    pub model: Option<String>,
    /// How long it may take, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// What it is an answer to; none for the first.
    #[serde(default)]
    #[serde(rename = "answering")]
    pub cause: Option<AttemptCause>,
    /// What was changed about it, in words for a person.
    #[serde(default)]
    pub changes: Vec<String>,
    /// The id of the conversation that the agent was told to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// The process that ends everything if unstuck itself ends: its id and when it started.
    #[serde(default)]
    pub reaper: Option<(u32, u64)>,
    /// The work tree before it, as the id of a git tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// What an attempt used, as far as the agent tells, or else as its calls were seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AttemptUsage {
    /// What it cost, in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How many tokens it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenUsage>,
    /// The agent's own id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// How many turns the agent took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Whether the agent told neither cost nor tokens, and they are what the gateway saw.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "is_counted")]
    pub is_from_gateway: bool,
    /// How long the conversation is, in tokens, as far as the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

impl AttemptUsage {
    /// How long the conversation is, in tokens: as it was told, or else as long as a request was on average.
    pub fn context_len(&self) -> Option<u64> {
        let average = self.tokens.map(TokenUsage::average_conversation);
        self.context_tokens.or(average).filter(|tokens| *tokens > 0)
    }
}

/// How the process of an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// The session that it belongs to.
    pub session: SessionId,
    /// Its number in the session.
    pub number: u32,
    /// The exit code, unless a signal ended it.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default)]
    pub signal: Option<i32>,
    /// The limit that was reached: `timeout` or `idle_timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How much it wrote to its standard output, in bytes.
    pub stdout_bytes: u64,
    /// How much it wrote to its standard error, in bytes.
    pub stderr_bytes: u64,
    /// How many of its processes were left and had to be ended.
    #[serde(default)]
    #[serde(rename = "left")]
    pub leftover_processes: u32,
    /// The model that answered, as far as is known.
    #[serde(default)]
    pub model: Option<String>,
    /// What it was an answer to.
    #[serde(default)]
    #[serde(rename = "answering")]
    pub cause: Option<AttemptCause>,
    /// What it used.
    #[serde(default)]
    #[serde(rename = "used")]
    pub usage: AttemptUsage,
    /// The work tree after it, as the id of a git tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// When there was progress last: a successful API call, or a completed tool result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_progress: Option<Timestamp>,
    /// Since when its API calls had been failing when it ended, one after the other, as the gateway saw them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
}

impl AttemptEnd {
    /// Whether it used something whose price nobody knows: tokens without a price, or an agent's work of which nothing is told.
    pub fn is_unpriced(&self, agent: Option<&str>) -> bool {
        let is_agent = agent.is_some_and(|agent| agent != GENERIC_COMMAND_AGENT);
        let has_begun = !matches!(self.exit_code, Some(126 | 127));
        self.usage.cost_usd.is_none()
            && match self.usage.tokens {
                Some(tokens) => tokens.average_conversation() > 0,
                None => is_agent && has_begun,
            }
    }
}

/// The agent of a role that is any program: that it costs nothing is known.
const GENERIC_COMMAND_AGENT: &str = "command";

/// The last that an attempt wrote, short enough to be kept for ever.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutputExcerpt {
    /// The end of its standard output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// The end of its standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

/// A try failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptFailed {
    /// How the process ended.
    #[serde(flatten)]
    pub end: AttemptEnd,
    /// What the failure was found to be.
    pub diagnosis: Diagnosis,
    /// What the checks of its output found wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation_errors: Vec<String>,
    /// The last that it wrote.
    #[serde(default)]
    pub excerpt: OutputExcerpt,
    /// The check that did not pass afterwards, where that is what failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<FailedCheck>,
    /// Whether the conversation that was to go on is not there any more, so that a new one is begun at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost_conversation: bool,
}

/// A check that did not pass after an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCheck {
    /// The command line.
    #[serde(rename = "line")]
    pub command: String,
    /// Its exit code.
    pub exit_code: i32,
    /// The last that it wrote.
    #[serde(flatten)]
    pub excerpt: OutputExcerpt,
}

impl FailedCheck {
    /// What was seen of it, as far as it is kept.
    pub fn to_failure(&self) -> Failure {
        Failure {
            command: Some(self.command.clone()),
            exit_code: Some(self.exit_code),
            stdout: Some(self.excerpt.stdout.clone().into()),
            stderr: Some(self.excerpt.stderr.clone().into()),
            ..Failure::new(Layer::Infra)
        }
    }
}

impl AttemptFailed {
    /// What was seen of it, as far as it is kept: of the check where that is what failed.
    pub fn to_failure(&self, command: &[String]) -> Failure {
        let seen = |text: &str| Some(text.to_owned().into());
        let failure = match &self.check {
            Some(check) => check.to_failure(),
            None => Failure {
                command: Some(quote_command(command)),
                exit_code: self.end.exit_code,
                signal: self.end.signal,
                stdout: seen(&self.excerpt.stdout),
                stderr: seen(&self.excerpt.stderr),
                ..Failure::new(self.diagnosis.layer)
            },
        };
        with_evidence(failure, &self.diagnosis)
    }
}

/// What was seen, with the line that told the kind of it, which may be long before what is kept.
pub(super) fn with_evidence(mut failure: Failure, diagnosis: &Diagnosis) -> Failure {
    let line = diagnosis.evidence.line.as_str();
    let stderr = failure
        .stderr
        .as_ref()
        .map(|text| text.to_str().into_owned());
    let stderr = stderr.unwrap_or_default();
    let stdout = failure
        .stdout
        .as_ref()
        .map(|text| text.to_str().into_owned());
    let is_there = stderr.contains(line) || stdout.is_some_and(|text| text.contains(line));
    if !is_there {
        failure.stderr = Some(format!("{line}\n{stderr}").into());
    }
    failure
}

fn quote_command(command: &[String]) -> String {
    let words: Vec<_> = command.iter().map(|word| shell_quote(word)).collect();
    words.join(" ")
}

/// A try did what it should.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptSucceeded {
    /// How the process ended.
    #[serde(flatten)]
    pub end: AttemptEnd,
    /// Whether its answer was cut off at its length limit.
    #[serde(default)]
    pub truncated: bool,
}

/// What cut an attempt off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptionCause {
    /// A person, by Ctrl-C or a request to stop.
    Person,
    /// SIGTERM to the process that supervised it.
    Sigterm,
    /// SIGHUP to the process that supervised it.
    Sighup,
    /// Its output could not be written.
    Output,
    /// The end of the process that supervised it.
    Crash,
}

/// A try was cut off from outside; it says nothing about the work, and is not a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptInterrupted {
    /// The session that it belongs to.
    pub session: SessionId,
    /// Its number in the session.
    pub number: u32,
    /// What cut it off.
    pub by: InterruptionCause,
    /// The agent's conversation, where there is one to go on in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// Whether it had written something by then, which shows that it was well until it was cut off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "progressed")]
    pub has_output: bool,
}
