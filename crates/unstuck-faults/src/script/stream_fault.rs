//! How an answer breaks: the small words inside the faults of streams and connections.

use serde::Deserialize;

/// In which way a stream breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutMode {
    /// The connection is closed without the end that HTTP asks for.
    #[default]
    Close,
    /// HTTP ends properly, as if that were all.
    End,
    /// The connection is reset.
    Reset,
}

/// How far an answer gets before its connection is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetPoint {
    /// Nothing is answered.
    #[default]
    BeforeHeaders,
    /// The headers are there, but no body.
    AfterHeaders,
    /// Half of the body is there.
    MidBody,
}

/// What an error inside of a stream says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamErrorKind {
    /// The provider has too much to do.
    #[default]
    Overloaded,
    /// The provider is broken.
    ServerError,
    /// Too many requests for now.
    RateLimit,
    /// The prompt is too long for the model.
    ContextLimit,
}
