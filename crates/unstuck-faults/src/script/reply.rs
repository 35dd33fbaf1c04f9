//! What a step answers: the vocabulary of faults.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use unstuck_core::Timestamp;

/// What a request is answered; errors come in the shape of the protocol that was spoken.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// A proper answer.
    Answer(Answer),
    /// Too many requests for now.
    RateLimit {
        /// The wait that is stated, in seconds; none if absent.
        retry_after: Option<u64>,
    },
    /// The plan is used up until a stated moment.
    UsageLimit(UsageLimit),
    /// The money is used up; waiting does not help.
    Quota,
    /// The provider has too much to do.
    Overloaded,
    /// The provider is broken.
    ServerError,
    /// The key is not valid.
    Auth,
    /// The prompt is too long for the model.
    ContextLimit,
    /// There is no such model.
    ModelNotFound,
    /// The model will not do this.
    Refusal,
    /// A proper answer without any text.
    Empty,
    /// Not a single byte, for ever.
    Hang,
    /// The headers of an answer, then silence.
    Stall,
    /// An answer whose connection breaks in the middle.
    Cut,
    /// A stream that begins well and then says that the provider is overloaded; `overloaded` if no stream was asked for.
    StreamError,
    /// An answer that is not what the protocol says.
    Malformed,
    /// A page of some proxy in between.
    Html {
        /// The HTTP status; 502 if absent.
        status: Option<u16>,
    },
    /// The call of a tool that fails; the scripted agent acts it out.
    ToolFailure(ToolFailure),
}

/// A proper answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What the model says.
    pub text: String,
    /// How long it takes, such as `"300ms"`; no time if absent.
    #[serde(default, deserialize_with = "duration")]
    pub delay: Duration,
    /// The tokens that are charged for the prompt; estimated if absent.
    pub input_tokens: Option<u64>,
    /// The tokens that are charged for the answer; estimated if absent.
    pub output_tokens: Option<u64>,
}

/// When the plan can be used again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UsageLimit {
    /// How long after the step was first taken, such as `"5s"`; 5 hours if absent.
    #[serde(deserialize_with = "duration")]
    pub resets_in: Duration,
    /// The moment itself; it goes before `resets_in`.
    pub resets_at: Option<Timestamp>,
    /// Whether requests that come before the reset are refused too, as the real limit does.
    pub holds: bool,
}

/// What a failing tool leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFailure {
    /// What it writes to its standard error.
    pub stderr: String,
    /// The exit code; 1 if absent.
    #[serde(default = "one")]
    pub exit_code: u8,
}

impl Reply {
    /// A proper answer with this text.
    pub fn answer(text: impl Into<String>) -> Self {
        Self::Answer(Answer {
            text: text.into(),
            ..Answer::default()
        })
    }

    /// A usage limit that ends so long after it was first met, and refuses everything until then.
    pub fn usage_limit(resets_in: Duration) -> Self {
        Self::UsageLimit(UsageLimit {
            resets_in,
            resets_at: None,
            holds: true,
        })
    }

    /// The name that it has in a script.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::RateLimit { .. } => "rate_limit",
            Self::UsageLimit(_) => "usage_limit",
            Self::Quota => "quota",
            Self::Overloaded => "overloaded",
            Self::ServerError => "server_error",
            Self::Auth => "auth",
            Self::ContextLimit => "context_limit",
            Self::ModelNotFound => "model_not_found",
            Self::Refusal => "refusal",
            Self::Empty => "empty",
            Self::Hang => "hang",
            Self::Stall => "stall",
            Self::Cut => "cut",
            Self::StreamError => "stream_error",
            Self::Malformed => "malformed",
            Self::Html { .. } => "html",
            Self::ToolFailure(_) => "tool_failure",
        }
    }
}

impl Default for UsageLimit {
    fn default() -> Self {
        Self {
            resets_in: Duration::from_secs(5 * 60 * 60),
            resets_at: None,
            holds: false,
        }
    }
}

const fn one() -> u8 {
    1
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    unstuck_core::duration::parse(&text).map_err(serde::de::Error::custom)
}
