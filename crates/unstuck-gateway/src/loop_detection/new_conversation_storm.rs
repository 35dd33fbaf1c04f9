//! Loop detection: too many new conversations in a short time.

use std::collections::VecDeque;

use unstuck_core::Timestamp;
use unstuck_core::duration::HumanDuration;

use super::{ApiLoopKind, ApiLoopSignal, LoopDetectionLimits};

/// Detects too many new conversations, by the start times of the last ones.
#[derive(Debug, Default)]
pub(super) struct NewConversationStorm(VecDeque<Timestamp>);

impl NewConversationStorm {
    /// Records a new conversation.
    pub(super) fn on_begin(
        &mut self,
        at: Timestamp,
        limits: &LoopDetectionLimits,
    ) -> Option<ApiLoopSignal> {
        let since = at.before(limits.conversation_storm_window);
        while self.0.front().is_some_and(|begun| *begun <= since) {
            self.0.pop_front();
        }
        self.0.push_back(at);
        let count = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        if limits.conversation_storm == 0 || count < limits.conversation_storm {
            return None;
        }
        self.0.clear();
        let time = HumanDuration(limits.conversation_storm_window);
        Some(ApiLoopSignal {
            kind: ApiLoopKind::ConversationStorm,
            count,
            sentence: format!("{count} new conversations were started within {time}."),
        })
    }
}
