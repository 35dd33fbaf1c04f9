//! Conversations that begin faster than they can be useful.

use std::collections::VecDeque;

use unstuck_core::Timestamp;
use unstuck_core::duration::HumanDuration;

use super::{ApiLoopKind, ApiLoopSignal, WatchLimits};

/// The start times of the last conversations.
#[derive(Debug, Default)]
pub(super) struct ConversationStorm(VecDeque<Timestamp>);

impl ConversationStorm {
    /// Records a new conversation.
    pub(super) fn on_begin(
        &mut self,
        at: Timestamp,
        limits: &WatchLimits,
    ) -> Option<ApiLoopSignal> {
        let since = at.before(limits.storm_time);
        while self.0.front().is_some_and(|begun| *begun <= since) {
            self.0.pop_front();
        }
        self.0.push_back(at);
        let count = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        if limits.storm == 0 || count < limits.storm {
            return None;
        }
        self.0.clear();
        let time = HumanDuration(limits.storm_time);
        Some(ApiLoopSignal {
            kind: ApiLoopKind::Storm,
            count,
            sentence: format!("{count} new conversations were begun within {time}."),
        })
    }
}
