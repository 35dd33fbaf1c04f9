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
    /// For the headers of a streamed response; `120s` by default.
    #[serde(rename = "response_headers", deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub response: Duration,
    /// For a whole response that is not streamed, at most; `600s` by default.
    #[serde(rename = "full_response", deserialize_with = "duration::read")]
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
    /// How long a client waits at most, all retries and waits included; `580s` by default.
    #[serde(rename = "client_wait", deserialize_with = "duration::read")]
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
    #[serde(rename = "probe_interval", deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub probe: Duration,
    /// For the request of the client to arrive; `60s` by default.
    #[serde(rename = "client_request", deserialize_with = "duration::read")]
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

/// `[gateway.loop_detection]`: the limits from which an agent counts as stuck in a loop; 0 switches a limit off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewayWatch {
    /// Same calls with the same results in a row; 5 by default.
    pub repeats: u32,
    /// Same calls with the same results among the last `window` turns; 8 by default.
    pub repeats_in_window: u32,
    /// Number of turns that `repeats_in_window` looks at; 12 by default.
    pub window: usize,
    /// Duration from which a tool counts as slow: polling it is no loop before `slow_tool_repeats`; `10s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub slow_tool: Duration,
    /// Same results of a slow tool in a row; 30 by default.
    #[serde(rename = "slow_tool_repeats")]
    pub slow_repeats: u32,
    /// Empty responses in a row; 3 by default.
    #[serde(rename = "empty_responses")]
    pub empty_answers: u32,
    /// Compactions of the context without lasting effect; 3 by default.
    #[serde(rename = "failed_compactions")]
    pub no_shrink: u32,
    /// Requests within which the context is as long as before, so that a compaction counts as failed; 5 by default.
    #[serde(rename = "compaction_window")]
    pub refill: u32,
    /// Contexts with fewer tokens are not checked for failed compactions; 16000 by default.
    #[serde(rename = "min_context_tokens")]
    pub shortest_full: u64,
    /// Responses in a row without anything new; 25 by default.
    #[serde(rename = "no_progress_responses")]
    pub no_progress: u32,
    /// New conversations within `conversation_storm_window`; 20 by default.
    #[serde(rename = "conversation_storm")]
    pub storm: u32,
    /// Time in which new conversations are counted; `60s` by default.
    #[serde(
        rename = "conversation_storm_window",
        deserialize_with = "duration::read"
    )]
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
