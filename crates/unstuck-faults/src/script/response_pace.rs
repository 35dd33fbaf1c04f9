//! The pace and chunk size of answers.

use serde::Deserialize;

use super::latency::LatencyDistribution;

/// The pace and chunk size of answers.
///
/// Applies to successful answers and to streams that break later; refusals are sent at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResponsePace {
    /// Delay of the headers.
    pub first_byte: LatencyDistribution,
    /// Delay between the frames of a stream.
    pub between: LatencyDistribution,
    /// Number of chunks of a streamed text; up to 4 if absent.
    pub chunks: Option<usize>,
    /// Bytes per chunk; with `chunks`, the text is repeated or cut to that length.
    pub chunk_bytes: Option<usize>,
}
