//! What a strategy changes about the next attempt, applied to concrete settings.

use serde::Serialize;

use crate::knowledge::{AttemptChange, ConversationMode, ModelChoice};

/// How much time an attempt gets that had no limit, once it is said to need more, in seconds.
pub const DEFAULT_TIMEOUT_SECONDS: u64 = 1800;

/// The settings of an attempt that strategies change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AttemptSettings {
    /// How long it may take, in seconds; none means as long as it likes.
    pub timeout: Option<u64>,
    /// How long its output may be; none means as long as it likes.
    pub output_limit: Option<u64>,
    /// The prompt template to add; the latest one counts.
    pub prompt: Option<String>,
    /// Which other model to use; none means the same.
    pub model: Option<ModelChoice>,
    /// Which conversation to use; none means as the attempt before did.
    pub session: Option<ConversationMode>,
    /// Whether to run an allowed repair before it.
    pub repair: bool,
}

impl AttemptSettings {
    /// The settings with all these changes made, one after the other.
    ///
    /// ```
    /// use unstuck_core::planner::AttemptSettings;
    /// use unstuck_core::knowledge::AttemptChange;
    ///
    /// let before = AttemptSettings { timeout: Some(1200), ..AttemptSettings::default() };
    /// assert_eq!(before.changed(&[AttemptChange::Timeout(1.5)]).timeout, Some(1800));
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

/// The value times a factor, cut to a whole number; a factor that makes no sense changes nothing.
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

    /// S1-19: the new timeout is int(old × 1.5), and 1800 s when there was none; 1200 s become 1800 s.
    #[test]
    fn a_timeout_grows_by_half_and_starts_at_half_an_hour() {
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

    /// S1-20: the output limit shrinks to 0.85 of itself and never to nothing.
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
    fn a_factor_without_meaning_changes_nothing() {
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
    fn the_other_changes_are_kept_as_they_are() {
        let all = AttemptSettings::default().with_changes(&[
            AttemptChange::Prompt("focus".into()),
            AttemptChange::Model(ModelChoice::Next),
            AttemptChange::Conversation(ConversationMode::Fresh),
            AttemptChange::Repair,
        ]);
        assert_eq!(all.prompt.as_deref(), Some("focus"));
        assert_eq!(
            (all.model, all.session),
            (Some(ModelChoice::Next), Some(ConversationMode::Fresh))
        );
        assert!(all.repair);
    }
}
