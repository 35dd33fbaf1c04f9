//! Events about one attempt of a session.

use serde::{Deserialize, Serialize};

use super::run_ids::SessionId;
use crate::decision::TokenUsage;
use crate::diagnosis::Diagnosis;
use crate::failure::{Failure, FailureKind, FailureLayer, RecoveryLevel};
use crate::recovery_plan::shell_quote;
use crate::time::Timestamp;

/// The reason for an attempt: the failure before it and the decision about that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryCause {
    /// The kind of the previous failure.
    pub kind: FailureKind,
    /// The recovery level.
    pub level: RecoveryLevel,
    /// The strategy from the chain, if one was used.
    #[serde(default)]
    pub strategy: Option<String>,
}

/// An attempt started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptStarted {
    /// The session of the attempt.
    pub session: SessionId,
    /// The attempt number in the session, from 1.
    pub number: u32,
    /// The command line of this attempt.
    pub command: Vec<String>,
    /// The model, if known.
    #[serde(default)]
    pub model: Option<String>,
    /// The timeout in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// The cause of the attempt; none for the first.
    #[serde(default)]
    #[serde(rename = "cause", alias = "answering")]
    pub cause: Option<RetryCause>,
    /// The changes in this attempt, as text for humans.
    #[serde(default)]
    pub changes: Vec<String>,
    /// The conversation id assigned to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// The reaper process, which ends all processes if unstuck itself dies: its id and start time.
    #[serde(default)]
    pub reaper: Option<(u32, u64)>,
    /// The work tree before the attempt, as the id of a git tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// The usage of an attempt as reported by the agent, otherwise as seen by the gateway.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AttemptUsage {
    /// The cost in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The token usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenUsage>,
    /// The agent's own conversation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// The number of turns of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// True if the agent reported neither cost nor tokens, and the gateway's figures are used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "from_gateway", alias = "is_counted")]
    pub is_from_gateway: bool,
    /// The length of the conversation in tokens, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

impl AttemptUsage {
    /// Returns the length of the conversation in tokens: the reported one, or the average length of its requests.
    pub fn context_len(&self) -> Option<u64> {
        let average = self.tokens.map(TokenUsage::average_conversation);
        self.context_tokens.or(average).filter(|tokens| *tokens > 0)
    }
}

/// The end of an attempt's process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// The session of the attempt.
    pub session: SessionId,
    /// The attempt number in the session.
    pub number: u32,
    /// The exit code, unless a signal ended it.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The signal that ended the process.
    #[serde(default)]
    pub signal: Option<i32>,
    /// The limit that was reached: `timeout` or `idle_timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The number of bytes written to standard output.
    pub stdout_bytes: u64,
    /// The number of bytes written to standard error.
    pub stderr_bytes: u64,
    /// The number of leftover processes that had to be ended.
    #[serde(default)]
    #[serde(rename = "leftover_processes", alias = "left")]
    pub leftover_processes: u32,
    /// The model that answered, if known.
    #[serde(default)]
    pub model: Option<String>,
    /// The cause of the attempt.
    #[serde(default)]
    #[serde(rename = "cause", alias = "answering")]
    pub cause: Option<RetryCause>,
    /// The usage of the attempt.
    #[serde(default)]
    #[serde(rename = "usage", alias = "used")]
    pub usage: AttemptUsage,
    /// The work tree after the attempt, as the id of a git tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The time of the last progress: a successful API call, or a completed tool result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_progress: Option<Timestamp>,
    /// The time since which its API calls had been failing without interruption, as the gateway saw them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
}

impl AttemptEnd {
    /// True if the price of some usage is unknown: tokens without a price, or an agent that reported nothing.
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

/// The agent name of a role that runs any program; such a program costs nothing.
const GENERIC_COMMAND_AGENT: &str = "command";

/// The end of an attempt's output, short enough to be kept permanently.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutputExcerpt {
    /// The end of standard output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// The end of standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

/// An attempt failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptFailed {
    /// The end of the process.
    #[serde(flatten)]
    pub end: AttemptEnd,
    /// The diagnosis of the failure.
    pub diagnosis: Diagnosis,
    /// The errors found by the checks of its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation_errors: Vec<String>,
    /// The end of its output.
    #[serde(default)]
    pub excerpt: OutputExcerpt,
    /// The failed check, if a check is the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<FailedCheck>,
    /// True if the conversation to resume no longer exists, so that a new one is started at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost_conversation: bool,
}

/// A check that failed after an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCheck {
    /// The command line.
    #[serde(rename = "command", alias = "line")]
    pub command: String,
    /// Its exit code.
    pub exit_code: i32,
    /// The end of its standard output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// The end of its standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

impl FailedCheck {
    /// Returns the failure as far as it is recorded.
    pub fn to_failure(&self) -> Failure {
        Failure {
            command: Some(self.command.clone()),
            exit_code: Some(self.exit_code),
            stdout: Some(self.stdout.clone().into()),
            stderr: Some(self.stderr.clone().into()),
            ..Failure::new(FailureLayer::Infra)
        }
    }
}

impl AttemptFailed {
    /// Returns the failure as far as it is recorded: that of the check if a check failed.
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

/// Adds the evidence line to a failure, which may be outside of the kept excerpt.
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

/// An attempt succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptSucceeded {
    /// The end of the process.
    #[serde(flatten)]
    pub end: AttemptEnd,
    /// True if the answer was truncated at its length limit.
    #[serde(default)]
    pub truncated: bool,
}

/// The cause of an interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptionCause {
    /// A human, by Ctrl-C or a stop request.
    Person,
    /// SIGTERM to the supervising process.
    Sigterm,
    /// SIGHUP to the supervising process.
    Sighup,
    /// The output could not be written.
    Output,
    /// A crash of the supervising process.
    Crash,
}

/// An attempt was interrupted from outside; this says nothing about the work and is not a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptInterrupted {
    /// The session of the attempt.
    pub session: SessionId,
    /// The attempt number in the session.
    pub number: u32,
    /// The cause of the interruption.
    pub by: InterruptionCause,
    /// The agent's conversation to resume, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// True if it had written output, which shows that it worked until the interruption.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "has_output", alias = "progressed")]
    pub has_output: bool,
}
