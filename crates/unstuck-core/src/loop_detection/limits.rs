//! The limits of loop detection, as configuration (`[stuck]`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of loop detection; omitted ones keep their default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentLoopLimits {
    /// If set, loop detection is enabled; on by default.
    pub enabled: bool,
    /// Number of times the same call fails in the same way; 5 by default. Possible work needs twice as many.
    pub repeats: u32,
    /// Number of times the same block of lines is written in a row; 8 by default. Short ones need more.
    pub output_repeats: u32,
    /// Number of times the same message is repeated in a row without a new action; 4 by default.
    pub message_repeats: u32,
    /// Number of latest calls examined; 20 by default.
    pub window: usize,
    /// Time a question on the screen may remain unanswered; `60s` by default.
    #[serde(with = "crate::duration::text")]
    pub waiting_for_input: Duration,
}

impl Default for AgentLoopLimits {
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

impl AgentLoopLimits {
    /// Returns limits that disable loop detection.
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
    fn omitted_limits_keep_their_default() {
        let limits: AgentLoopLimits =
            toml::from_str("repeats = 3\nwaiting_for_input = '2m'").unwrap();
        let expected = AgentLoopLimits {
            repeats: 3,
            waiting_for_input: Duration::from_secs(120),
            ..AgentLoopLimits::default()
        };
        assert_eq!(limits, expected);
        assert!(toml::from_str::<AgentLoopLimits>("repeat = 3").is_err());
        assert!(toml::from_str::<AgentLoopLimits>("waiting_for_input = 60").is_err());
        let written = serde_json::to_value(&limits).unwrap();
        assert_eq!(
            serde_json::from_value::<AgentLoopLimits>(written).unwrap(),
            limits
        );
    }

    #[test]
    fn default_limits_are_stable() {
        let AgentLoopLimits {
            enabled,
            repeats,
            output_repeats,
            message_repeats,
            window,
            waiting_for_input,
        } = AgentLoopLimits::default();
        assert!(enabled && waiting_for_input.as_secs() == 60 && window == 20);
        assert_eq!((repeats, output_repeats, message_repeats), (5, 8, 4));
    }
}
