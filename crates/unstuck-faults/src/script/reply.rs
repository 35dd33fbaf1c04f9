//! The replies of a step: the vocabulary of faults.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::duration;
use super::headers;
use super::reply_parameters::{FaultScriptAnswer, ScriptedToolFailure, ToolCall, UsageLimit};
use super::stream_fault::{ConnectionResetPoint, FaultStreamCutMode, StreamedApiErrorKind};
use crate::protocol::RetryAfterFormat;

/// The reply to a request; errors have the format of the request's protocol.
///
/// Frames are counted from the beginning of a stream, opening frames included. If a stream fault meets a request
/// without a stream, the plain answer gets the closest equivalent: it breaks in the middle.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultScriptReply {
    /// A successful answer.
    Answer(FaultScriptAnswer),
    /// A rate limit.
    RateLimit {
        /// Stated wait in seconds; none if absent.
        retry_after: Option<u64>,
    },
    /// A rate limit with the wait in a chosen form.
    RateLimitAs {
        /// Form of the wait.
        form: RetryAfterFormat,
        /// Wait; a second if absent.
        #[serde(default = "default_wait", deserialize_with = "duration::required")]
        wait: Duration,
    },
    /// A plan that is used up until a stated time.
    UsageLimit(UsageLimit),
    /// Exhausted credit; waiting does not help.
    Quota,
    /// An overloaded provider.
    Overloaded,
    /// An internal error of the provider.
    ServerError,
    /// The provider's error with any status, such as 502, 503, 504, 529, 408 or 413.
    Status {
        /// HTTP status.
        code: u16,
        /// Stated wait in seconds; none if absent.
        retry_after: Option<u64>,
        /// Message; the provider's usual one if absent.
        message: Option<String>,
        /// Additional headers, such as `x-should-retry`.
        #[serde(default, deserialize_with = "headers::deserialize_headers")]
        headers: BTreeMap<String, String>,
    },
    /// An invalid key.
    Auth,
    /// An expired key or login.
    AuthExpired,
    /// A prompt that is too long for the model.
    ContextLimit,
    /// An unknown model.
    ModelNotFound,
    /// A request blocked by the provider's filter; an HTTP error where the provider has one.
    ContentFilter,
    /// A rejected prefill: the model does not continue an answer begun by the client.
    PrefillRejected,
    /// A refusal by the model.
    Refusal,
    /// A successful answer without any text.
    Empty,
    /// An answer truncated at the maximum length.
    MaxTokens {
        /// Text so far; a broken-off sentence if absent.
        text: Option<String>,
    },
    /// A tool call; with `times = "always"` the same one again and again.
    ToolCall(ToolCall),
    /// A failing tool call; the scripted agent reports it as failed.
    ToolFailure(ScriptedToolFailure),
    /// No response at all, forever.
    Hang,
    /// The headers of an answer, then silence.
    Stall,
    /// A stream that falls silent after some frames.
    StallAt {
        /// Number of frames before; 3 if absent.
        #[serde(default = "default_after")]
        after: usize,
        /// Duration of the silence; forever if absent.
        #[serde(default, deserialize_with = "duration::optional")]
        wait: Option<Duration>,
        /// Interval of keep-alive pings meanwhile; none if absent.
        #[serde(default, deserialize_with = "duration::optional")]
        pings: Option<Duration>,
        /// If set, the connection is closed after one more frame at the end of the silence.
        #[serde(default)]
        cut: bool,
    },
    /// A stream that opens at once and then delays its first text.
    SlowFirstToken {
        /// Delay.
        #[serde(deserialize_with = "duration::required")]
        wait: Duration,
        /// Interval of keep-alive pings meanwhile; none if absent.
        #[serde(default, deserialize_with = "duration::optional")]
        pings: Option<Duration>,
    },
    /// An answer whose connection breaks in the middle.
    Cut,
    /// A stream that breaks off after some frames.
    CutAt {
        /// Number of frames before; 3 if absent.
        #[serde(default = "default_after")]
        after: usize,
        /// Way it breaks off; the connection is closed if absent.
        #[serde(default)]
        by: FaultStreamCutMode,
    },
    /// The connection is reset (a real RST).
    Reset {
        /// Progress of the answer before the reset; before its headers if absent.
        #[serde(default)]
        by: ConnectionResetPoint,
    },
    /// The connection is closed without any answer.
    Close,
    /// A stream that begins well and then reports an overloaded provider; `overloaded` if no stream was requested.
    StreamError,
    /// A stream that reports an error after some frames.
    ErrorAt {
        /// Number of frames before; 3 if absent.
        #[serde(default = "default_after")]
        after: usize,
        /// Error; an overloaded provider if absent.
        #[serde(default)]
        error: StreamedApiErrorKind,
    },
    /// A stream in which one frame is not JSON; the other frames are complete.
    BadChunk {
        /// Number of frames before; 3 if absent.
        #[serde(default = "default_after")]
        after: usize,
        /// If set, the bad frame is added and replaces none.
        #[serde(default)]
        extra: bool,
    },
    /// A stream without its end marker (`message_stop`, `response.completed`, `[DONE]`, `finishReason`), ended properly
    /// by HTTP.
    MissingEnd {
        /// If set, the stop reason is missing too.
        #[serde(default)]
        reason_too: bool,
    },
    /// An answer with truncated JSON.
    Malformed,
    /// An answer of the right length whose JSON is invalid in one place.
    InvalidJson,
    /// An answer with a wrong `content-length`: too large, or (below 0) too small.
    WrongLength {
        /// Added to the true length; 100 if absent.
        #[serde(default = "default_by")]
        by: i64,
    },
    /// An answer whose chunked body has an invalid chunk size.
    BadFraming,
    /// Bytes that are not HTTP.
    NotHttp,
    /// An HTML page of a proxy in between.
    Html {
        /// HTTP status; 502 if absent.
        status: Option<u16>,
    },
    /// An exact copy of the request: method, path, query, headers in their order, body.
    Echo,
}

impl FaultScriptReply {
    /// Returns a successful answer with this text.
    pub fn answer(text: impl Into<String>) -> Self {
        Self::Answer(FaultScriptAnswer {
            text: text.into(),
            ..FaultScriptAnswer::default()
        })
    }

    /// Returns a usage limit that ends this long after it was first reached, and refuses everything until then.
    pub fn usage_limit(resets_in: Duration) -> Self {
        Self::UsageLimit(UsageLimit {
            resets_in,
            resets_at: None,
            is_enforced: true,
        })
    }

    /// Returns the provider's error with this status.
    pub const fn status(code: u16) -> Self {
        Self::Status {
            code,
            retry_after: None,
            message: None,
            headers: BTreeMap::new(),
        }
    }

    /// Returns the name used in scripts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::RateLimit { .. } => "rate_limit",
            Self::RateLimitAs { .. } => "rate_limit_as",
            Self::UsageLimit(_) => "usage_limit",
            Self::Quota => "quota",
            Self::Overloaded => "overloaded",
            Self::ServerError => "server_error",
            Self::Status { .. } => "status",
            Self::Auth => "auth",
            Self::AuthExpired => "auth_expired",
            Self::ContextLimit => "context_limit",
            Self::ModelNotFound => "model_not_found",
            Self::ContentFilter => "content_filter",
            Self::PrefillRejected => "prefill_rejected",
            Self::Refusal => "refusal",
            Self::Empty => "empty",
            Self::MaxTokens { .. } => "max_tokens",
            Self::ToolCall(_) => "tool_call",
            Self::ToolFailure(_) => "tool_failure",
            Self::Hang => "hang",
            Self::Stall => "stall",
            Self::StallAt { .. } => "stall_at",
            Self::SlowFirstToken { .. } => "slow_first_token",
            Self::Cut => "cut",
            Self::CutAt { .. } => "cut_at",
            Self::Reset { .. } => "reset",
            Self::Close => "close",
            Self::StreamError => "stream_error",
            Self::ErrorAt { .. } => "error_at",
            Self::BadChunk { .. } => "bad_chunk",
            Self::MissingEnd { .. } => "missing_end",
            Self::Malformed => "malformed",
            Self::InvalidJson => "invalid_json",
            Self::WrongLength { .. } => "wrong_length",
            Self::BadFraming => "bad_framing",
            Self::NotHttp => "not_http",
            Self::Html { .. } => "html",
            Self::Echo => "echo",
        }
    }
}

const fn default_wait() -> Duration {
    Duration::from_secs(1)
}

const fn default_after() -> usize {
    3
}

const fn default_by() -> i64 {
    100
}
