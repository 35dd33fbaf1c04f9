//! How fast answers come, and in which pieces.

use serde::Deserialize;

use super::latency::Latency;

/// How fast answers come, and in which pieces.
///
/// Times are those of proper answers and of streams that break later; refusals come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResponsePace {
    /// How long it takes until the headers come.
    pub first_byte: Latency,
    /// How long it takes from one frame of a stream to the next.
    pub between: Latency,
    /// In how many pieces a text is streamed; up to 4 if absent.
    pub chunks: Option<usize>,
    /// How many bytes each piece has; with `chunks` the text is repeated or cut until it has that length.
    pub chunk_bytes: Option<usize>,
}
