//! The changes of a strategy, applied to the settings of the next attempt.

use serde::Serialize;

use crate::knowledge::{AttemptChange, ConversationMode, ReplacementModelChoice};

/// The timeout of an attempt that had none and is found to need more time, in seconds.
pub const DEFAULT_TIMEOUT_SECONDS: u64 = 1800;

/// The settings of an attempt that strategies change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AttemptSettings {
    /// The timeout in seconds; unlimited if absent.
    pub timeout: Option<u64>,
    /// The output limit; unlimited if absent.
    pub output_limit: Option<u64>,
    /// The prompt template to add; the latest one applies.
    pub prompt: Option<String>,
    /// The choice of another model; none means the same.
    pub model: Option<ReplacementModelChoice>,
    /// The choice of conversation; none means as in the previous attempt.
    pub session: Option<ConversationMode>,
    /// True if an approved repair runs first.
    pub repair: bool,
}

impl AttemptSettings {
    /// Returns the settings with all these changes applied in order.
    ///
    /// ```
    /// use unstuck_core::recovery_plan::AttemptSettings;
    /// use unstuck_core::knowledge::AttemptChange;
    ///
    /// let before = AttemptSettings { timeout: Some(1200), ..AttemptSettings::default() };
    /// assert_eq!(before.with_changes(&[AttemptChange::Timeout(1.5)]).timeout, Some(1800));
    /// ```
    #[must_use]
    pub fn with_changes(&self, changes: &[AttemptChange]) -> Self {
        changes.iter().fold(self.clone(), Self::with_change)
    }

    fn with_change(mut self, change: &AttemptChange) -> Self {
        match change {
            AttemptChange::Prompt(template) => self.prompt = Some(template.clone()),
            AttemptChange::Timeout(factor) => {
                self.timeout = Some(
                    self.timeout
                        .map_or(DEFAULT_TIMEOUT_SECONDS, |old| scale(old, *factor)),
                );
            }
            AttemptChange::OutputLimit(factor) => {
                self.output_limit = self.output_limit.map(|old| scale(old, *factor).max(1));
            }
            AttemptChange::Model(choice) => self.model = Some(*choice),
            AttemptChange::Conversation(choice) => self.session = Some(*choice),
            AttemptChange::Repair => self.repair = true,
        }
        self
    }
}

/// Multiplies the value and truncates to a whole number; an invalid factor changes nothing.
fn scale(value: u64, factor: f64) -> u64 {
    if !factor.is_finite() || factor <= 0.0 {
        return value;
    }
    // A limit past 2^53 has no meaning, and the cast saturates.
    (value as f64 * factor) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(timeout: Option<u64>) -> AttemptSettings {
        AttemptSettings {
            timeout,
            ..AttemptSettings::default()
        }
    }

    /// S1-19: the new timeout is int(old × 1.5), and 1800 s if there was none; 1200 s become 1800 s.
    #[test]
    fn a_timeout_grows_by_half_and_defaults_to_half_an_hour() {
        let longer = [AttemptChange::Timeout(1.5)];
        assert_eq!(
            timeout(Some(1200)).with_changes(&longer).timeout,
            Some(1800)
        );
        assert_eq!(timeout(Some(5)).with_changes(&longer).timeout, Some(7));
        assert_eq!(timeout(None).with_changes(&longer).timeout, Some(1800));
    }

    /// S1-26: changes accumulate on the current settings, not on the first ones.
    #[test]
    fn changes_accumulate() {
        let once = timeout(Some(1200)).with_changes(&[AttemptChange::Timeout(1.5)]);
        assert_eq!(
            once.with_changes(&[AttemptChange::Timeout(1.5)]).timeout,
            Some(2700)
        );
    }

    /// S1-20: the output limit shrinks by the factor 0.85 and never to zero.
    #[test]
    fn an_output_limit_shrinks() {
        let limited = |limit| AttemptSettings {
            output_limit: Some(limit),
            ..AttemptSettings::default()
        };
        let less = [AttemptChange::OutputLimit(0.85)];
        assert_eq!(limited(1000).with_changes(&less).output_limit, Some(850));
        assert_eq!(limited(1).with_changes(&less).output_limit, Some(1));
        assert_eq!(
            AttemptSettings::default().with_changes(&less).output_limit,
            None
        );
    }

    #[test]
    fn an_invalid_factor_changes_nothing() {
        for factor in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert_eq!(
                timeout(Some(9))
                    .with_changes(&[AttemptChange::Timeout(factor)])
                    .timeout,
                Some(9)
            );
        }
    }

    #[test]
    fn other_changes_are_kept_unchanged() {
        let all = AttemptSettings::default().with_changes(&[
            AttemptChange::Prompt("focus".into()),
            AttemptChange::Model(ReplacementModelChoice::Next),
            AttemptChange::Conversation(ConversationMode::Fresh),
            AttemptChange::Repair,
        ]);
        assert_eq!(all.prompt.as_deref(), Some("focus"));
        assert_eq!(
            (all.model, all.session),
            (
                Some(ReplacementModelChoice::Next),
                Some(ConversationMode::Fresh)
            )
        );
        assert!(all.repair);
    }
}
