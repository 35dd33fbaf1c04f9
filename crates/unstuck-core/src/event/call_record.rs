//! One call of an LLM API through the gateway, from the client's request to the end of the answer.

use serde::{Deserialize, Serialize};

use super::id::{RunId, SessionId};
use crate::decision::TokenUsage;
use crate::failure::Kind;
use crate::time::Timestamp;

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It was answered at the first try.
    Answered,
    /// It was answered after something had failed.
    Recovered,
    /// It failed, and the client was told.
    Failed,
    /// Its answer broke off after some of it had been passed on, and the client was told.
    #[serde(rename = "cut")]
    Truncated,
    /// The client went away.
    Cancelled,
    /// It was not let through: a budget, a limit of ours, or an agent that goes in circles.
    Refused,
}

impl CallOutcome {
    /// Every outcome.
    pub const ALL: [Self; 6] = [
        Self::Answered,
        Self::Recovered,
        Self::Failed,
        Self::Truncated,
        Self::Cancelled,
        Self::Refused,
    ];

    /// The outcome of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Whether the client got the whole answer.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Answered | Self::Recovered)
    }

    /// The name used on every wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Recovered => "recovered",
            Self::Failed => "failed",
            Self::Truncated => "cut",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
        }
    }
}

/// A call that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its id.
    pub call: String,
    /// The run that it belongs to.
    pub run: RunId,
    /// The session that it belongs to.
    pub session: SessionId,
    /// When the client asked.
    pub at: Timestamp,
    /// What was spoken: `anthropic`, `openai`, `gemini`.
    pub protocol: String,
    /// What was asked for: `messages`, `chat`, `responses`, `generate`, `other`.
    pub endpoint: String,
    /// Who was asked last.
    pub upstream: String,
    /// The model that the client asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "asked_model")]
    pub requested_model: Option<String>,
    /// The model that answered, or was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the answer came in pieces.
    #[serde(rename = "stream")]
    pub is_stream: bool,
    /// What came of it.
    pub outcome: CallOutcome,
    /// The HTTP status that the client got.
    pub status: u16,
    /// The kind of the newest failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// How often an upstream was asked.
    pub attempts: u32,
    /// How long was waited between tries and for leave to go, in milliseconds.
    pub waited_ms: u64,
    /// How long until the client got the first byte, in milliseconds.
    pub first_byte_ms: u64,
    /// How long it took in all, in milliseconds.
    pub duration_ms: u64,
    /// How many bytes of the answer were passed on.
    pub sent_bytes: u64,
    /// How many tokens it used, where the answer tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenUsage>,
    /// What it cost, in USD, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It was cut because it was too long.
    MaxTokens,
    /// It waits for tools.
    ToolUse,
    /// The provider kept it back.
    ContentFilter,
    /// The model would not.
    Refusal,
    /// In a way that has no name here.
    Other(String),
}

/// How the newest call of a session ended: evidence of whether its client got a usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCall {
    /// When it ended.
    pub at: Timestamp,
    /// What came of it.
    pub outcome: CallOutcome,
    /// The kind of its newest failure, one that was recovered from included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Why the answer ended; none if it did not come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Whether the answer held neither text nor a call of a tool.
    pub is_empty: bool,
    /// Whether the client offered tools: agents do in their own turns, not in side calls such as one for a title.
    pub has_tools: bool,
}

impl LastCall {
    /// Whether the client got a whole answer with something in it.
    pub fn is_usable(&self) -> bool {
        self.outcome.is_success() && !self.is_empty
    }
}
