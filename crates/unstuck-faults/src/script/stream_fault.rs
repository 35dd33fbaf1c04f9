//! Options of stream and connection faults.

use serde::Deserialize;

/// The way a stream breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultStreamCutMode {
    /// The connection is closed without a proper end.
    #[default]
    Close,
    /// HTTP ends properly, as if the answer were complete.
    End,
    /// The connection is reset.
    Reset,
}

/// The progress of an answer before its connection is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionResetPoint {
    /// Before the headers.
    #[default]
    BeforeHeaders,
    /// After the headers, before the body.
    AfterHeaders,
    /// After half of the body.
    MidBody,
}

/// The error inside a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamedApiErrorKind {
    /// An overloaded provider.
    #[default]
    Overloaded,
    /// An internal error of the provider.
    ServerError,
    /// A rate limit.
    RateLimit,
    /// A prompt that is too long for the model.
    ContextLimit,
}
