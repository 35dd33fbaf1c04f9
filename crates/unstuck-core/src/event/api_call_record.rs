//! One API call through the gateway, from the client's request to the end of the response.

use serde::{Deserialize, Serialize};

use super::run_ids::{RunId, SessionId};
use crate::decision::TokenUsage;
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiCallOutcome {
    /// The first API attempt succeeded.
    Answered,
    /// It succeeded after a failure.
    Recovered,
    /// It failed, and the client received an error.
    Failed,
    /// The response broke off after a part of it had been sent, and the client was informed.
    #[serde(rename = "truncated", alias = "cut")]
    Truncated,
    /// The client disconnected.
    Cancelled,
    /// It was refused: by a budget, a limit of unstuck, or loop detection.
    Refused,
}

impl ApiCallOutcome {
    /// All outcomes.
    pub const ALL: [Self; 6] = [
        Self::Answered,
        Self::Recovered,
        Self::Failed,
        Self::Truncated,
        Self::Cancelled,
        Self::Refused,
    ];

    /// Returns the outcome with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// True if the client received the whole response.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Answered | Self::Recovered)
    }

    /// Returns the wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Recovered => "recovered",
            Self::Failed => "failed",
            Self::Truncated => "truncated",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
        }
    }
}

/// A finished call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiCallRecord {
    /// The id of the call.
    pub call: String,
    /// The run of the call.
    pub run: RunId,
    /// The session of the call.
    pub session: SessionId,
    /// The time of the client's request.
    #[serde(rename = "requested_at", alias = "at")]
    pub at: Timestamp,
    /// The protocol: `anthropic`, `openai`, `gemini`.
    pub protocol: String,
    /// The endpoint: `messages`, `chat`, `responses`, `generate`, `other`.
    pub endpoint: String,
    /// The last upstream used.
    pub upstream: String,
    /// The model requested by the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "requested_model", alias = "asked_model")]
    pub requested_model: Option<String>,
    /// The model that answered, or the last one requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// True if the response was streamed.
    #[serde(rename = "stream")]
    pub is_stream: bool,
    /// The outcome.
    pub outcome: ApiCallOutcome,
    /// The HTTP status sent to the client.
    pub status: u16,
    /// The kind of the latest failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureKind>,
    /// The number of API attempts.
    pub attempts: u32,
    /// The time spent in backoff and admission, in milliseconds.
    pub waited_ms: u64,
    /// The time until the client received the first byte, in milliseconds.
    pub first_byte_ms: u64,
    /// The total duration in milliseconds.
    pub duration_ms: u64,
    /// The number of response bytes sent to the client.
    pub sent_bytes: u64,
    /// The token usage, if the response includes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenUsage>,
    /// The cost in USD, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// The reason why a response ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was complete.
    Stop,
    /// It reached the length limit.
    MaxTokens,
    /// It waits for tool results.
    ToolUse,
    /// The provider's content filter withheld it.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// Another reason.
    Other(String),
}

/// The end of a session's latest call: evidence of whether the client received a usable response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastApiCall {
    /// The time of the end.
    pub at: Timestamp,
    /// The outcome.
    pub outcome: ApiCallOutcome,
    /// The kind of its latest failure, including one it recovered from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureKind>,
    /// The reason why the response ended; none if it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// True if the response contained neither text nor a tool call.
    pub is_empty: bool,
    /// True if the client offered tools: agents do in their own turns, not in side calls such as one for a title.
    pub has_tools: bool,
}

impl LastApiCall {
    /// True if the client received a complete, non-empty response.
    pub fn is_usable(&self) -> bool {
        self.outcome.is_success() && !self.is_empty
    }
}
