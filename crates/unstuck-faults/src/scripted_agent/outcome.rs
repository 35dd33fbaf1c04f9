//! The outcome of one prompt: the model's answer, or the failure.

use unstuck_core::Timestamp;

/// The model's answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ModelAnswer {
    pub(super) text: String,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// Standard error and exit code of a failed tool.
    pub(super) tool_failure: Option<(String, i32)>,
}

/// The reason there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentFailure {
    /// The API refused the request.
    Refused(ApiRefusal),
    /// The model refused.
    Declined,
    /// The connection failed.
    Unreachable(String),
    /// The connection broke.
    Lost,
    /// The request timed out.
    TimedOut,
    /// The response is malformed.
    Malformed { status: u16 },
}

/// A refusal by the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiRefusal {
    pub(super) status: u16,
    pub(super) message: String,
    /// Stated wait in seconds.
    pub(super) retry_after: Option<u64>,
    /// Reset of the subscription's window.
    pub(super) reset: Option<Timestamp>,
}
