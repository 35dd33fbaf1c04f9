//! What the server can carry: its capacity, the times in which it has less, and the limits of each key.

use std::time::Duration;

use serde::Deserialize;

use super::bounded_numbers::{amount, rate, share};
use super::duration;
use super::latency::Latency;

/// What the server can do at a time; beyond it requests queue, and beyond the queue they are refused as overload.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capacity {
    /// How many requests are begun in a second; any number if absent.
    #[serde(deserialize_with = "rate")]
    pub per_second: Option<f64>,
    /// How many are worked on at a time; any number if absent.
    pub concurrent: Option<u32>,
    /// How many may wait for their turn.
    pub queue: u32,
    /// How long the work on one takes.
    pub service: Latency,
    /// What a refusal costs, as a share of the work on a request (of `per_second`).
    #[serde(deserialize_with = "amount")]
    pub rejection_cost: f64,
}

/// A time in which the server has another capacity or fails more often.
///
/// Times count from the first request to a model.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityPhase {
    /// When it begins.
    #[serde(deserialize_with = "duration::required")]
    pub from: Duration,
    /// How long it lasts.
    #[serde(rename = "for", deserialize_with = "duration::required")]
    pub lasts: Duration,
    /// The share of the capacity that is left; all of it if absent.
    #[serde(default = "full_share", deserialize_with = "share")]
    pub share: f64,
    /// The share of requests that fail by the mix; as usual if absent.
    #[serde(default, deserialize_with = "optional_share")]
    pub failures: Option<f64>,
}

/// What each key may use, as providers count it: a bucket that fills again evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeyLimits {
    /// Requests per window; any number if absent.
    pub requests_per_minute: Option<u32>,
    /// Tokens (prompt and answer) per window; any number if absent.
    pub tokens_per_minute: Option<u32>,
    /// How long the window is; a minute if absent.
    #[serde(deserialize_with = "duration::required")]
    pub window: Duration,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            per_second: None,
            concurrent: None,
            queue: 100,
            service: Latency::NONE,
            rejection_cost: 0.1,
        }
    }
}

impl Default for KeyLimits {
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
