//! What comes of one prompt: what the model said, or why there is no answer.

use unstuck_core::Timestamp;

/// What the model said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ModelAnswer {
    pub(super) text: String,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// What a failed tool wrote to its standard error, and its exit code.
    pub(super) tool_failure: Option<(String, i32)>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentFailure {
    /// The API refused.
    Refused(ApiRefusal),
    /// The model will not do this.
    Declined,
    /// There is no connection.
    Unreachable(String),
    /// The connection broke.
    Lost,
    /// Nothing came in time.
    TimedOut,
    /// What came is no answer.
    Malformed { status: u16 },
}

/// What the API said when it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiRefusal {
    pub(super) status: u16,
    pub(super) message: String,
    /// The stated wait in seconds.
    pub(super) retry_after: Option<u64>,
    /// The moment at which the subscription's window begins anew.
    pub(super) reset: Option<Timestamp>,
}
