//! Loop detection: context shortening (compaction) that is futile, as the context is soon full again or still too long.

use super::signal::is_due;
use super::{ApiLoopKind, ApiLoopSignal, ConversationId, LoopDetectionLimits};
use crate::protocol::RequestFacts;

/// The maximum number of remembered conversations.
const MAX_CONVERSATIONS: usize = 64;

/// Detects futile context shortening, by the context lengths of a session.
#[derive(Debug, Default)]
pub(super) struct CompactionTracker {
    sizes: Vec<ContextSize>,
    /// The number of consecutive futile shrinks.
    futile_shrinks: u32,
    refused: Option<ContextRefusal>,
}

#[derive(Debug)]
struct ContextSize {
    conversation: ConversationId,
    tokens: u64,
    shortened: Option<ShortenedContext>,
}

/// A context that was just shortened, or seems to be.
#[derive(Debug, Clone, Copy)]
struct ShortenedContext {
    from: ConversationId,
    before: u64,
    requests: u32,
}

/// A context that the upstream rejected as too long.
#[derive(Debug, Clone, Copy)]
struct ContextRefusal {
    tokens: u64,
    times: u32,
    answered_since: u32,
}

impl CompactionTracker {
    /// Records a new request.
    pub(super) fn on_request(
        &mut self,
        talk: ConversationId,
        asked: &RequestFacts,
        limits: &LoopDetectionLimits,
    ) -> Option<ApiLoopSignal> {
        self.mark_continued(talk);
        let tokens = asked.prompt_tokens;
        let Some(at) = self.sizes.iter().position(|size| size.conversation == talk) else {
            self.begin_conversation(talk, tokens, limits);
            return None;
        };
        let mut size = self.sizes.remove(at);
        let before = std::mem::replace(&mut size.tokens, tokens);
        if is_much_shorter(tokens, before, limits) {
            size.shortened = Some(ShortenedContext {
                from: talk,
                before,
                requests: 0,
            });
        }
        let sign = self.check_refilled(&mut size, limits);
        self.sizes.push(size);
        sign
    }

    /// Marks a conversation as continued: it was not replaced by a shorter one, which belongs to another agent.
    fn mark_continued(&mut self, talk: ConversationId) {
        for size in self
            .sizes
            .iter_mut()
            .filter(|size| size.conversation != talk)
        {
            size.shortened = size.shortened.filter(|shortened| shortened.from != talk);
        }
    }

    /// Starts a conversation, which may be the summary of the last one.
    fn begin_conversation(
        &mut self,
        talk: ConversationId,
        tokens: u64,
        limits: &LoopDetectionLimits,
    ) {
        let last = self.sizes.last();
        let shortened = last
            .filter(|last| is_much_shorter(tokens, last.tokens, limits))
            .map(|last| ShortenedContext {
                from: last.conversation,
                before: last.tokens,
                requests: 0,
            });
        if self.sizes.len() >= MAX_CONVERSATIONS {
            self.sizes.remove(0);
        }
        self.sizes.push(ContextSize {
            conversation: talk,
            tokens,
            shortened,
        });
    }

    /// Checks whether the context is as long as before it was shortened.
    fn check_refilled(
        &mut self,
        size: &mut ContextSize,
        limits: &LoopDetectionLimits,
    ) -> Option<ApiLoopSignal> {
        let shortened = size.shortened.as_mut()?;
        let (before, requests) = (shortened.before, shortened.requests);
        shortened.requests = requests.saturating_add(1);
        if requests > limits.compaction_window {
            self.futile_shrinks = 0;
            size.shortened = None;
            return None;
        }
        if size.tokens < tenths_of(before, 9) {
            return None;
        }
        size.shortened = None;
        self.futile_shrinks = self.futile_shrinks.saturating_add(1);
        let (count, refill) = (self.futile_shrinks, limits.compaction_window);
        is_due(count, limits.failed_compactions).then(|| ApiLoopSignal {
            kind: ApiLoopKind::FailedCompactions,
            count,
            sentence: format!(
                "The context was compacted {count} times and was full again within {refill} requests each time."
            ),
        })
    }

    /// Records a request that the upstream rejected as too long.
    pub(super) fn on_refusal(
        &mut self,
        talk: ConversationId,
        limits: &LoopDetectionLimits,
    ) -> Option<ApiLoopSignal> {
        let size = self.sizes.iter().find(|size| size.conversation == talk)?;
        let earlier = self.refused.filter(|earlier| {
            earlier.answered_since < limits.compaction_window
                && size.tokens >= tenths_of(earlier.tokens, 8)
        });
        let times = earlier.map_or(0, |earlier| earlier.times).saturating_add(1);
        self.refused = Some(ContextRefusal {
            tokens: size.tokens,
            times,
            answered_since: 0,
        });
        is_due(times, limits.failed_compactions).then(|| ApiLoopSignal {
            kind: ApiLoopKind::FailedCompactions,
            count: times,
            sentence: format!("The context was too long {times} times and has not become shorter."),
        })
    }

    /// Records a response.
    pub(super) fn on_response(&mut self) {
        if let Some(refused) = &mut self.refused {
            refused.answered_since = refused.answered_since.saturating_add(1);
        }
    }
}

/// Returns true if a context lost so much that it was shortened on purpose.
fn is_much_shorter(tokens: u64, before: u64, limits: &LoopDetectionLimits) -> bool {
    before >= limits.min_context_tokens && tokens <= tenths_of(before, 6)
}

/// Returns the given tenths of a token count.
fn tenths_of(tokens: u64, tenths: u64) -> u64 {
    tokens.saturating_mul(tenths) / 10
}
