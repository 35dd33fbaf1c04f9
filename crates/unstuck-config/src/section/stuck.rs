//! `[stuck]`: loop detection.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use unstuck_core::loop_detection::AgentLoopLimits;

use super::{duration, number};

/// Maps `[stuck]` to the limits of the core, which provide the defaults.
#[derive(Deserialize, JsonSchema)]
#[serde(
    remote = "AgentLoopLimits",
    deny_unknown_fields,
    default,
    expecting = "a table"
)]
pub(crate) struct StuckSection {
    /// If false, loop detection is off; true by default.
    enabled: bool,
    /// Identical failures of the same call before it is a loop; 5 by default. Calls that may be real work need twice as
    /// many.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    repeats: u32,
    /// Repetitions of the same block of output lines in a row; 8 by default. Short blocks need more.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    output_repeats: u32,
    /// Repetitions of the same message in a row without new activity; 4 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    message_repeats: u32,
    /// Number of recent calls to check; 20 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    window: usize,
    /// Maximum time an agent may be silent after a question that will not be answered; `60s` by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    waiting_for_input: Duration,
}

/// The defaults in the JSON Schema.
impl Default for StuckSection {
    fn default() -> Self {
        let AgentLoopLimits {
            enabled,
            repeats,
            output_repeats,
            message_repeats,
            window,
            waiting_for_input,
        } = AgentLoopLimits::default();
        Self {
            enabled,
            repeats,
            output_repeats,
            message_repeats,
            window,
            waiting_for_input,
        }
    }
}
