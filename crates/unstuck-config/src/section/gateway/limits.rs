//! How long the gateway waits for what, and how often is too often.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::section::duration;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// `[gateway.timeouts]`: how long the gateway waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewayTimeouts {
    /// For a connection; `10s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub connect: Duration,
    /// For the head of an answer that comes in pieces; `120s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub response: Duration,
    /// For a whole answer that does not come in pieces, at most; `600s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub whole: Duration,
    /// For the first content of a stream; `120s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub first_content: Duration,
    /// For the next piece of a stream; `90s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub stall: Duration,
    /// How long a client is held at most, all tries and waits included; `580s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub hold: Duration,
    /// After what time a held client is sent signs of life; `15s` by default, `0s` sends none.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub keep_alive: Duration,
    /// Another upstream is asked at once where a wait would be longer than this; `5s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub fallback_after: Duration,
    /// A silent upstream is left for another one after this time, where there is one; `10s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub fallback_silence: Duration,
    /// Between two probes of an upstream that is down, once the clients would have given up; `60s` by default, at least `1s`.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub probe: Duration,
    /// For the request of the client to arrive; `60s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub request: Duration,
}

impl Default for GatewayTimeouts {
    fn default() -> Self {
        Self {
            connect: seconds(10),
            response: seconds(120),
            whole: seconds(600),
            first_content: seconds(120),
            stall: seconds(90),
            hold: seconds(580),
            keep_alive: seconds(15),
            fallback_after: seconds(5),
            fallback_silence: seconds(10),
            probe: seconds(60),
            request: seconds(60),
        }
    }
}

/// `[gateway.watch]`: from which point on an agent goes in circles; a limit of 0 is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewayWatch {
    /// The same calls with the same results so often in a row; 5 by default.
    pub repeats: u32,
    /// … or so often among the last `window` turns; 8 by default.
    pub repeats_in_window: u32,
    /// How many of the last turns are looked at; 12 by default.
    pub window: usize,
    /// A tool that takes so long is waited for, not called in vain; `10s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub slow_tool: Duration,
    /// The same result of such a tool so often in a row; 30 by default.
    pub slow_repeats: u32,
    /// Empty answers in a row; 3 by default.
    pub empty_answers: u32,
    /// So often the context was shortened in vain; 3 by default.
    pub no_shrink: u32,
    /// It was in vain if the context is as long as before within so many requests; 5 by default.
    pub refill: u32,
    /// Contexts of fewer tokens are not long enough to be shortened; 16000 by default.
    pub shortest_full: u64,
    /// Answers in a row that bring nothing new; 25 by default.
    pub no_progress: u32,
    /// So many conversations begun …; 20 by default.
    pub storm: u32,
    /// … within that time; `60s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub storm_time: Duration,
}

impl Default for GatewayWatch {
    fn default() -> Self {
        Self {
            repeats: 5,
            repeats_in_window: 8,
            window: 12,
            slow_tool: seconds(10),
            slow_repeats: 30,
            empty_answers: 3,
            no_shrink: 3,
            refill: 5,
            shortest_full: 16_000,
            no_progress: 25,
            storm: 20,
            storm_time: seconds(60),
        }
    }
}
