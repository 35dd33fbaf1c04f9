//! Gateway timeouts and the limits of loop detection.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::section::duration;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// `[gateway.timeouts]`: gateway timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewayTimeouts {
    /// Connection timeout; `10s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub connect: Duration,
    /// Time to wait for the headers of a streamed response; `120s` by default.
    #[serde(rename = "response_headers", deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub response: Duration,
    /// Maximum time for a whole non-streamed response; `600s` by default.
    #[serde(rename = "full_response", deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub whole: Duration,
    /// Time to wait for the first content of a stream; `120s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub first_content: Duration,
    /// Time to wait for the next chunk of a stream; `90s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub stall: Duration,
    /// Maximum time a client waits, including all retries and delays; `580s` by default.
    #[serde(rename = "client_wait", deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub hold: Duration,
    /// Time after which a waiting client is sent keep-alive bytes; `15s` by default, `0s` disables them.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub keep_alive: Duration,
    /// Delay above which another upstream is used immediately; `5s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub fallback_after: Duration,
    /// Time after which a silent upstream is replaced by another one, if available; `10s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub fallback_silence: Duration,
    /// Interval between probes of an upstream that is down, once clients would have timed out; `60s` by default, at
    /// least `1s`.
    #[serde(rename = "probe_interval", deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub probe: Duration,
    /// Time to receive the request of the client; `60s` by default.
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

/// `[gateway.loop_detection]`: the limits of loop detection; 0 disables a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewayLoopLimits {
    /// Identical calls with identical results in a row; 5 by default.
    pub repeats: u32,
    /// Identical calls with identical results among the last `window` turns; 8 by default.
    pub repeats_in_window: u32,
    /// Number of turns checked for `repeats_in_window`; 12 by default.
    pub window: usize,
    /// Duration from which a tool is slow: polling it is not a loop before `slow_tool_repeats`; `10s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub slow_tool: Duration,
    /// Identical results of a slow tool in a row; 30 by default.
    pub slow_tool_repeats: u32,
    /// Empty responses in a row; 3 by default.
    pub empty_responses: u32,
    /// Compactions of the context without lasting effect; 3 by default.
    pub failed_compactions: u32,
    /// Requests after which a compaction has failed if the context is as long as before; 5 by default.
    pub compaction_window: u32,
    /// Minimum context size in tokens for detecting failed compactions; 16000 by default.
    pub min_context_tokens: u64,
    /// Responses in a row without anything new; 25 by default.
    pub no_progress_responses: u32,
    /// New conversations within `conversation_storm_window`; 20 by default.
    pub conversation_storm: u32,
    /// Time window in which new conversations are counted; `60s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub conversation_storm_window: Duration,
}

impl Default for GatewayLoopLimits {
    fn default() -> Self {
        Self {
            repeats: 5,
            repeats_in_window: 8,
            window: 12,
            slow_tool: seconds(10),
            slow_tool_repeats: 30,
            empty_responses: 3,
            failed_compactions: 3,
            compaction_window: 5,
            min_context_tokens: 16_000,
            no_progress_responses: 25,
            conversation_storm: 20,
            conversation_storm_window: seconds(60),
        }
    }
}
