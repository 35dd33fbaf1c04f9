//! How often is too often, as configuration (`[stuck]`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// When an agent counts as stuck; what is left out keeps its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoopLimits {
    /// Whether agents are watched at all; on by default.
    pub enabled: bool,
    /// The same call failing in the same way so often; 5 by default. What may well be work needs twice as many.
    pub repeats: u32,
    /// The same block of written lines so often in a row; 8 by default. Short ones need more.
    pub output_repeats: u32,
    /// The same message of the agent so often in a row, with nothing new done in between; 4 by default.
    pub message_repeats: u32,
    /// How many of the last calls are looked at; 20 by default.
    pub window: usize,
    /// How long a question on the screen may stand without an answer; `60s` by default.
    #[serde(with = "crate::duration::text")]
    pub waiting_for_input: Duration,
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self {
            enabled: true,
            repeats: 5,
            output_repeats: 8,
            message_repeats: 4,
            window: 20,
            waiting_for_input: Duration::from_secs(60),
        }
    }
}

impl LoopLimits {
    /// Nobody is watched.
    pub fn off() -> Self {
        Self {
            enabled: false,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_keeps_its_default() {
        let limits: LoopLimits = toml::from_str("repeats = 3\nwaiting_for_input = '2m'").unwrap();
        let expected = LoopLimits {
            repeats: 3,
            waiting_for_input: Duration::from_secs(120),
            ..LoopLimits::default()
        };
        assert_eq!(limits, expected);
        assert!(toml::from_str::<LoopLimits>("repeat = 3").is_err());
        assert!(toml::from_str::<LoopLimits>("waiting_for_input = 60").is_err());
        let written = serde_json::to_value(&limits).unwrap();
        assert_eq!(
            serde_json::from_value::<LoopLimits>(written).unwrap(),
            limits
        );
    }

    #[test]
    fn the_defaults_are_these() {
        let LoopLimits {
            enabled,
            repeats,
            output_repeats,
            message_repeats,
            window,
            waiting_for_input,
        } = LoopLimits::default();
        assert!(enabled && waiting_for_input.as_secs() == 60 && window == 20);
        assert_eq!((repeats, output_repeats, message_repeats), (5, 8, 4));
    }
}
