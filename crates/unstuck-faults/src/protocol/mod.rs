//! The wire protocols: requests, answers and refusals of each.

mod anthropic;
mod auxiliary_endpoints;
mod gemini;
mod model_call;
mod openai_chat;
mod openai_error;
mod openai_responses;
mod rate_limit_headers;
mod retry_after;
mod retry_after_format;
mod route;
mod text_chunks;

pub(crate) use auxiliary_endpoints::answer as side_answer;
pub(crate) use model_call::{ModelCall, estimate_tokens};
pub(crate) use rate_limit_headers::{LimitUnit, OverLimit, RateLimitStatus, RemainingLimit};
pub(crate) use retry_after::{Headers, RetryAfterHint, whole_seconds};
pub use retry_after_format::RetryAfterFormat;
pub(crate) use route::{AuxiliaryQuery, Route};
pub(crate) use text_chunks::TextChunkSpec;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unstuck_core::Timestamp;

/// A protocol that the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, and the rest of that API.
    Chat,
    /// Gemini.
    Gemini,
}

/// The content of the model's message.
#[derive(Debug, Clone)]
pub(crate) enum MessageContent {
    Text(String),
    /// A text truncated at the maximum length.
    Truncated(String),
    Refusal,
    ToolCall {
        name: String,
        input: Value,
    },
    Empty,
}

/// A successful answer, independent of the protocol.
#[derive(Debug, Clone)]
pub(crate) struct ModelMessage {
    /// Number of the request, from which all ids are derived.
    pub(crate) number: u64,
    pub(crate) model: String,
    pub(crate) content: MessageContent,
    pub(crate) usage: ChargedTokens,
    pub(crate) pieces: TextChunkSpec,
}

/// The charged tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChargedTokens {
    /// The whole prompt, including the cached part.
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
}

/// The reason a request is refused, independent of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rejection {
    RateLimit {
        retry_after: Option<u64>,
    },
    StatedRateLimit(RetryAfterHint),
    OverLimit(OverLimit),
    UsageLimit {
        reset: Timestamp,
        seconds: u64,
    },
    Quota,
    Overloaded,
    ServerError,
    Status {
        code: u16,
        retry_after: Option<u64>,
        message: Option<String>,
    },
    Auth,
    AuthExpired,
    ContextLimit,
    ModelNotFound,
    ContentFilter,
    Prefill,
    NoSuchPath,
    TooLarge,
    NotJson,
    NoStep,
}

/// A refusal in the format of a protocol.
#[derive(Debug)]
pub(crate) struct RefusalResponse {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) body: Value,
}

/// Creation time of every answer in seconds since the epoch; fixed, so that the same script gives the same bytes.
const CREATED: u64 = 1_763_000_000;

/// Refusal text of an OpenAI model.
const REFUSAL: &str = "I'm sorry, but I can't help with that.";

impl Protocol {
    /// Returns the whole answer as one JSON document.
    pub(crate) fn document(self, message: &ModelMessage) -> Value {
        match self {
            Self::Anthropic => anthropic::document(message),
            Self::Responses => openai_responses::document(message),
            Self::Chat => openai_chat::document(message),
            Self::Gemini => gemini::document(message),
        }
    }

    /// Returns the answer as the frames of an event stream.
    pub(crate) fn stream(self, message: &ModelMessage, call: &ModelCall) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic::stream(message),
            Self::Responses => openai_responses::stream(message),
            Self::Chat => openai_chat::stream(message, call),
            Self::Gemini => gemini::stream(message),
        }
    }

    /// Returns the frame by which a stream reports an error, given the number of frames before it.
    pub(crate) fn error_frame(
        self,
        message: &ModelMessage,
        rejection: &Rejection,
        after: usize,
    ) -> String {
        let refused = self.refusal_response(rejection, &message.model, message.number);
        match self {
            Self::Anthropic => format!("event: error\ndata: {}\n\n", refused.body),
            Self::Responses => openai_responses::failed_event(message, &refused, after),
            Self::Chat => format!("data: {}\n\n", refused.body),
            Self::Gemini => format!("data: {}\r\n\r\n", refused.body),
        }
    }

    /// Returns the number of frames before the first text.
    pub(crate) fn opening_frames(self) -> usize {
        match self {
            // message_start, content_block_start, ping
            Self::Anthropic => 3,
            // created, in_progress, output_item.added, content_part.added
            Self::Responses => 4,
            // the role
            Self::Chat => 1,
            Self::Gemini => 0,
        }
    }

    /// Returns the numbers of closing frames of a text stream.
    pub(crate) fn closing_frames(self, call: &ModelCall) -> ClosingFrameCounts {
        let usage = usize::from(call.wants_usage);
        let (marker, with_reason) = match self {
            Self::Anthropic => (1, 2),
            Self::Chat => (1, 2 + usage),
            Self::Responses | Self::Gemini => (1, 1),
        };
        ClosingFrameCounts {
            marker,
            with_reason,
        }
    }

    /// Returns a keep-alive frame of a stream.
    pub(crate) fn ping(self) -> &'static str {
        match self {
            Self::Anthropic => "event: ping\ndata: {\"type\": \"ping\"}\n\n",
            Self::Gemini => ": keep-alive\r\n\r\n",
            Self::Responses | Self::Chat => ": keep-alive\n\n",
        }
    }

    /// Returns the headers with the id of an answer; Gemini has none.
    pub(crate) fn id_headers(self, number: u64) -> Headers {
        match self {
            Self::Anthropic => vec![("request-id", format!("req_{number:08}"))],
            Self::Responses | Self::Chat => vec![("x-request-id", format!("req_{number:08}"))],
            Self::Gemini => Vec::new(),
        }
    }

    /// Returns the refusal in the provider's format.
    pub(crate) fn refusal_response(
        self,
        rejection: &Rejection,
        model: &str,
        number: u64,
    ) -> RefusalResponse {
        match self {
            Self::Anthropic => anthropic::refuse(rejection, model, number),
            Self::Responses | Self::Chat => openai_error::refuse(rejection, model, number),
            Self::Gemini => gemini::refuse(rejection, model),
        }
    }
}

/// The number of closing frames of a stream: the end marker alone, and with the stop reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClosingFrameCounts {
    /// Frames of the end marker alone.
    pub(crate) marker: usize,
    /// Frames from the stop reason to the end.
    pub(crate) with_reason: usize,
}

impl ChargedTokens {
    pub(crate) fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}
