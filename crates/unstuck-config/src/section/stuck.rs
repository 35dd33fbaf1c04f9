//! `[stuck]`: when an agent is taken for stuck.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{duration, number};

/// `[stuck]`: when an agent is taken for stuck.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Stuck {
    /// Whether it is watched for at all; true by default.
    pub enabled: bool,
    /// How often the same action or the same failure may come; 3 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    pub repeats: u32,
    /// How often the same output may be repeated; 20 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    pub output_repeats: u32,
    /// How long an agent may be silent after a question that nobody will answer; 60 s by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub waiting_for_input: Duration,
}

impl Default for Stuck {
    fn default() -> Self {
        Self {
            enabled: true,
            repeats: 3,
            output_repeats: 20,
            waiting_for_input: Duration::from_mins(1),
        }
    }
}
