//! What an answer said.

use unstuck_core::decision::TokenUsage;
pub use unstuck_core::event::FinishReason;

use crate::protocol::hash::TextHash;
use crate::protocol::request::ToolCall;

/// What an answer said, as far as it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseSummary {
    /// The model that answered.
    pub model: Option<String>,
    /// The tokens used, if the answer tells; those written to the provider's cache are among `input`.
    pub tokens: Option<TokenUsage>,
    /// How many tokens of the input were written to the provider's cache, which some charge more for.
    pub cache_written: u64,
    /// Why it ended.
    pub finish: Option<FinishReason>,
    /// The error that came instead of an answer or amid it, as raw JSON.
    pub error: Option<String>,
    /// The hash of its id, where later requests can continue it by that.
    pub id_hash: Option<u64>,
    /// The tools it calls.
    pub calls: Vec<ToolCall>,
    /// How long its text is; thoughts do not count, a refusal does.
    pub text_bytes: u64,
    /// The hash of its text.
    pub text_hash: u64,
    /// Whether its text is JSON; known only at the end, and only where the [text was kept](super::ResponseReader::with_text).
    pub json: JsonState,
}

impl Default for ResponseSummary {
    fn default() -> Self {
        Self {
            model: None,
            tokens: None,
            cache_written: 0,
            finish: None,
            error: None,
            id_hash: None,
            calls: Vec::new(),
            text_bytes: 0,
            text_hash: TextHash::EMPTY.value(),
            json: JsonState::Unknown,
        }
    }
}

impl ResponseSummary {
    /// Whether there is nothing in it for an agent to go on with: neither text nor a call.
    pub fn is_empty(&self) -> bool {
        self.text_bytes == 0 && self.calls.is_empty()
    }
}

/// Whether a text is JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JsonState {
    /// It is.
    Valid,
    /// It is not.
    Invalid,
    /// That is not known.
    #[default]
    Unknown,
}
