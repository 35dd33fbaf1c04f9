//! The summary of a response.

use unstuck_core::decision::TokenUsage;
pub use unstuck_core::event::FinishReason;

use crate::protocol::request::ToolCall;
use crate::protocol::text_hash::TextHash;

/// The summary of a response, as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseSummary {
    /// The model that answered.
    pub model: Option<String>,
    /// The tokens used, if reported; `input` includes those written to the provider's cache.
    pub tokens: Option<TokenUsage>,
    /// The number of input tokens written to the provider's cache, which some providers charge extra for.
    pub cache_written: u64,
    /// The finish reason.
    pub finish: Option<FinishReason>,
    /// The error sent instead of a response or within it, as raw JSON.
    pub error: Option<String>,
    /// The hash of the id, if later requests can continue the response by it.
    pub id_hash: Option<u64>,
    /// The tool calls.
    pub calls: Vec<ToolCall>,
    /// The length of the text; reasoning is excluded, a refusal included.
    pub text_bytes: u64,
    /// The hash of the text.
    pub text_hash: u64,
    /// The JSON state of the text; known only at the end, and only if the [text was
    /// kept](super::ResponseReader::with_text).
    pub json: JsonValidity,
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
            json: JsonValidity::Unknown,
        }
    }
}

impl ResponseSummary {
    /// Returns true if an agent can do nothing with it: no text and no call.
    pub fn is_empty(&self) -> bool {
        self.text_bytes == 0 && self.calls.is_empty()
    }
}

/// The result of checking a text for JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JsonValidity {
    /// The text is valid JSON.
    Valid,
    /// The text is not valid JSON.
    Invalid,
    /// The text was not checked.
    #[default]
    Unknown,
}
