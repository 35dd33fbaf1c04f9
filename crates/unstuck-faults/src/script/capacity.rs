//! The server's capacity, the phases with less of it, and the limits of each key.

use std::time::Duration;

use serde::Deserialize;

use super::bounded_numbers::{amount, rate, share};
use super::duration;
use super::latency::LatencyDistribution;

/// The concurrent capacity of the server; requests beyond it are queued, and beyond the queue refused as overload.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerCapacity {
    /// Requests begun per second; unlimited if absent.
    #[serde(deserialize_with = "rate")]
    pub per_second: Option<f64>,
    /// Requests processed concurrently; unlimited if absent.
    pub concurrent: Option<u32>,
    /// Maximum queue length.
    pub queue: u32,
    /// Processing time of a request.
    pub service: LatencyDistribution,
    /// Cost of a refusal, as a share of the work on a request (of `per_second`).
    #[serde(deserialize_with = "amount")]
    pub rejection_cost: f64,
}

/// A phase in which the server has another capacity or fails more often.
///
/// Its times are relative to the first model call.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultServerCapacityPhase {
    /// Start of the phase.
    #[serde(deserialize_with = "duration::required")]
    pub from: Duration,
    /// Duration of the phase.
    #[serde(rename = "for", deserialize_with = "duration::required")]
    pub lasts: Duration,
    /// Remaining share of the capacity; all of it if absent.
    #[serde(default = "full_share", deserialize_with = "share")]
    pub share: f64,
    /// Share of requests that fail by the mix; unchanged if absent.
    #[serde(default, deserialize_with = "optional_share")]
    pub failures: Option<f64>,
}

/// The limits of each key, as providers count them: a token bucket that refills evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultServerKeyLimits {
    /// Requests per window; unlimited if absent.
    pub requests_per_minute: Option<u32>,
    /// Tokens (prompt and answer) per window; unlimited if absent.
    pub tokens_per_minute: Option<u32>,
    /// Length of the window; a minute if absent.
    #[serde(deserialize_with = "duration::required")]
    pub window: Duration,
}

impl Default for ServerCapacity {
    fn default() -> Self {
        Self {
            per_second: None,
            concurrent: None,
            queue: 100,
            service: LatencyDistribution::NONE,
            rejection_cost: 0.1,
        }
    }
}

impl Default for FaultServerKeyLimits {
    fn default() -> Self {
        Self {
            requests_per_minute: None,
            tokens_per_minute: None,
            window: Duration::from_secs(60),
        }
    }
}

const fn full_share() -> f64 {
    1.0
}

fn optional_share<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    share(from).map(Some)
}
