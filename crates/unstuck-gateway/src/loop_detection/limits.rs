//! The limits of the loop detector, as data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits above which an agent is considered stuck in a loop; omitted ones keep their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoopDetectionLimits {
    /// The number of consecutive equal calls with equal results; 5 by default.
    pub repeats: u32,
    /// … or that many among the last [`window`](Self::window) turns; 8 by default.
    pub repeats_in_window: u32,
    /// The number of last turns that are considered; 12 by default.
    pub window: usize,
    /// The duration from which a tool counts as slow, so that repeating it may be polling; `10s` by default.
    #[serde(with = "text")]
    pub slow_tool: Duration,
    /// The number of consecutive equal results of a slow tool; 30 by default.
    #[serde(alias = "slow_repeats")]
    pub slow_tool_repeats: u32,
    /// The number of consecutive empty responses; 3 by default.
    #[serde(alias = "empty_answers")]
    pub empty_responses: u32,
    /// The number of futile context shrinks; 3 by default.
    #[serde(alias = "no_shrink")]
    pub failed_compactions: u32,
    /// The number of requests within which a context that is as long as before makes a shrink futile; 5 by default.
    #[serde(alias = "refill")]
    pub compaction_window: u32,
    /// The minimum tokens of a context that is shortened; 16000 by default.
    #[serde(alias = "shortest_full")]
    pub min_context_tokens: u64,
    /// The number of consecutive responses without anything new; 25 by default.
    #[serde(alias = "no_progress")]
    pub no_progress_responses: u32,
    /// The number of new conversations …; 20 by default.
    #[serde(alias = "storm")]
    pub conversation_storm: u32,
    /// … within this time; `60s` by default.
    #[serde(with = "text", alias = "storm_time")]
    pub conversation_storm_window: Duration,
}

impl Default for LoopDetectionLimits {
    fn default() -> Self {
        Self {
            repeats: 5,
            repeats_in_window: 8,
            window: 12,
            slow_tool: Duration::from_secs(10),
            slow_tool_repeats: 30,
            empty_responses: 3,
            failed_compactions: 3,
            compaction_window: 5,
            min_context_tokens: 16_000,
            no_progress_responses: 25,
            conversation_storm: 20,
            conversation_storm_window: Duration::from_secs(60),
        }
    }
}

/// Serializes durations as texts with a unit.
mod text {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};
    use unstuck_core::duration::{format_exact, parse};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format_exact(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_limits() {
        let limits = LoopDetectionLimits::default();
        assert_eq!(
            (limits.repeats, limits.repeats_in_window, limits.window),
            (5, 8, 12)
        );
        assert_eq!(
            (limits.slow_tool.as_secs(), limits.slow_tool_repeats),
            (10, 30)
        );
        assert_eq!(
            (limits.empty_responses, limits.no_progress_responses),
            (3, 25)
        );
        assert_eq!(
            (
                limits.failed_compactions,
                limits.compaction_window,
                limits.min_context_tokens
            ),
            (3, 5, 16_000)
        );
        assert_eq!(
            (
                limits.conversation_storm,
                limits.conversation_storm_window.as_secs()
            ),
            (20, 60)
        );
    }

    #[test]
    fn omitted_limits_keep_their_defaults() {
        let limits: LoopDetectionLimits =
            serde_json::from_str(r#"{"repeats": 3, "slow_tool": "1m"}"#).unwrap();
        let expected = LoopDetectionLimits {
            repeats: 3,
            slow_tool: Duration::from_secs(60),
            ..LoopDetectionLimits::default()
        };
        assert_eq!(limits, expected);
        assert!(serde_json::from_str::<LoopDetectionLimits>(r#"{"repeat": 3}"#).is_err());
    }
}
