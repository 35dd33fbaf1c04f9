//! What a step answers: the vocabulary of faults.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::answer::{AnswerSpec, ToolCall, ToolFailure, UsageLimit};
use super::duration;
use super::headers;
use super::stream_fault::{CutMode, ResetPoint, StreamErrorKind};
use crate::protocol::RetryAfterFormat;

/// What a request is answered; errors come in the shape of the protocol that was spoken.
///
/// Frames are counted from the beginning of a stream: those that only open it count too. A fault of streams that
/// meets a request without one does the nearest thing that a plain answer can: it breaks in the middle.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// A proper answer.
    Answer(AnswerSpec),
    /// Too many requests for now.
    RateLimit {
        /// The wait that is stated, in seconds; none if absent.
        retry_after: Option<u64>,
    },
    /// Too many requests for now, with the wait stated in one chosen form.
    RateLimitAs {
        /// Where and how the wait is stated.
        form: RetryAfterFormat,
        /// How long to wait; a second if absent.
        #[serde(default = "default_wait", deserialize_with = "duration::required")]
        wait: Duration,
    },
    /// The plan is used up until a stated moment.
    UsageLimit(UsageLimit),
    /// The money is used up; waiting does not help.
    Quota,
    /// The provider has too much to do.
    Overloaded,
    /// The provider is broken.
    ServerError,
    /// The provider's error with any status, such as 502, 503, 504, 529, 408 or 413.
    Status {
        /// The HTTP status.
        code: u16,
        /// The wait that is stated, in seconds; none if absent.
        retry_after: Option<u64>,
        /// What it says; the provider's usual words if absent.
        message: Option<String>,
        /// Further headers, such as `x-should-retry`.
        #[serde(default, deserialize_with = "headers::deserialize_headers")]
        headers: BTreeMap<String, String>,
    },
    /// The key is not valid.
    Auth,
    /// The key or the login was valid once.
    AuthExpired,
    /// The prompt is too long for the model.
    ContextLimit,
    /// There is no such model.
    ModelNotFound,
    /// The provider's filter stops the request; an error of HTTP where the provider has one.
    ContentFilter,
    /// The model does not go on with an answer that was begun for it.
    PrefillRejected,
    /// The model will not do this.
    Refusal,
    /// A proper answer without any text.
    Empty,
    /// An answer that ends where the allowed length does.
    MaxTokens {
        /// What the model got to say; a sentence that breaks off if absent.
        text: Option<String>,
    },
    /// The call of a tool; with `times = "always"` the same one again and again.
    ToolCall(ToolCall),
    /// The call of a tool that fails; the scripted agent acts it out.
    ToolFailure(ToolFailure),
    /// Not a single byte, for ever.
    Hang,
    /// The headers of an answer, then silence.
    Stall,
    /// A stream that falls silent after some frames.
    StallAt {
        /// How many frames come before; 3 if absent.
        #[serde(default = "default_after")]
        after: usize,
        /// How long the silence is; for ever if absent.
        #[serde(default, deserialize_with = "duration::optional")]
        wait: Option<Duration>,
        /// How often a sign of life comes meanwhile; none if absent.
        #[serde(default, deserialize_with = "duration::optional")]
        pings: Option<Duration>,
        /// Whether the connection is closed after one more frame, when the silence is over.
        #[serde(default)]
        cut: bool,
    },
    /// A stream that opens at once and then takes its time before the first word.
    SlowFirstToken {
        /// How long it takes.
        #[serde(deserialize_with = "duration::required")]
        wait: Duration,
        /// How often a sign of life comes meanwhile; none if absent.
        #[serde(default, deserialize_with = "duration::optional")]
        pings: Option<Duration>,
    },
    /// An answer whose connection breaks in the middle.
    Cut,
    /// A stream that breaks off after some frames.
    CutAt {
        /// How many frames come before; 3 if absent.
        #[serde(default = "default_after")]
        after: usize,
        /// In which way it breaks off; the connection is closed if absent.
        #[serde(default)]
        by: CutMode,
    },
    /// The connection is reset (a real RST).
    Reset {
        /// How far the answer gets; not even to its headers if absent.
        #[serde(default)]
        by: ResetPoint,
    },
    /// The connection is closed without any answer.
    Close,
    /// A stream that begins well and then says that the provider is overloaded; `overloaded` if no stream was asked for.
    StreamError,
    /// A stream that says after some frames what went wrong.
    ErrorAt {
        /// How many frames come before; 3 if absent.
        #[serde(default = "default_after")]
        after: usize,
        /// What it says; that the provider is overloaded if absent.
        #[serde(default)]
        error: StreamErrorKind,
    },
    /// A stream one of whose frames is no JSON; the others are all there.
    BadChunk {
        /// How many frames come before; 3 if absent.
        #[serde(default = "default_after")]
        after: usize,
        /// Whether it comes besides the good ones, and takes the place of none.
        #[serde(default)]
        extra: bool,
    },
    /// A stream without its last word (`message_stop`, `response.completed`, `[DONE]`, `finishReason`), ended properly by HTTP.
    MissingEnd {
        /// Whether the reason why the model stopped is missing too.
        #[serde(default)]
        reason_too: bool,
    },
    /// An answer that is not what the protocol says: its JSON breaks off.
    Malformed,
    /// An answer of the right length whose JSON is wrong in one place.
    InvalidJson,
    /// An answer whose `content-length` is wrong by so many bytes: too large, or (below 0) too small.
    WrongLength {
        /// How much is added to the true length; 100 if absent.
        #[serde(default = "default_by")]
        by: i64,
    },
    /// An answer whose chunked body has a size that is no number.
    BadFraming,
    /// Bytes that are no HTTP at all.
    NotHttp,
    /// A page of some proxy in between.
    Html {
        /// The HTTP status; 502 if absent.
        status: Option<u16>,
    },
    /// What exactly came in: method, path, query, headers in their order, body.
    Echo,
}

impl Reply {
    /// A proper answer with this text.
    pub fn answer(text: impl Into<String>) -> Self {
        Self::Answer(AnswerSpec {
            text: text.into(),
            ..AnswerSpec::default()
        })
    }

    /// A usage limit that ends so long after it was first met, and refuses everything until then.
    pub fn usage_limit(resets_in: Duration) -> Self {
        Self::UsageLimit(UsageLimit {
            resets_in,
            resets_at: None,
            is_enforced: true,
        })
    }

    /// The provider's error with this status.
    pub const fn status(code: u16) -> Self {
        Self::Status {
            code,
            retry_after: None,
            message: None,
            headers: BTreeMap::new(),
        }
    }

    /// The name that it has in a script.
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
