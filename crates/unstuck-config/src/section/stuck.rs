//! `[stuck]`: when an agent is taken for stuck.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use unstuck_core::loop_detection::LoopLimits;

use super::{duration, number};

/// How `[stuck]` is read into the limits of the core, whose defaults count.
#[derive(Deserialize, JsonSchema)]
#[serde(
    remote = "LoopLimits",
    deny_unknown_fields,
    default,
    expecting = "a table"
)]
pub(crate) struct StuckSection {
    /// Whether it is watched for at all; true by default.
    enabled: bool,
    /// How often the same call may fail in the same way; 5 by default. What may well be work needs twice as many.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    repeats: u32,
    /// How often the same block of lines may be written in a row; 8 by default. Short ones need more.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    output_repeats: u32,
    /// How often the agent may say the same in a row with nothing new done in between; 4 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    message_repeats: u32,
    /// How many of the last calls are looked at; 20 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    window: usize,
    /// How long an agent may be silent after a question that nobody will answer; 60 s by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    waiting_for_input: Duration,
}

/// What the JSON Schema tells as defaults.
impl Default for StuckSection {
    fn default() -> Self {
        let LoopLimits {
            enabled,
            repeats,
            output_repeats,
            message_repeats,
            window,
            waiting_for_input,
        } = LoopLimits::default();
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
