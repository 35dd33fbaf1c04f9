//! A context that is shortened in vain: full again at once, or too long all the same.

use super::signal::is_due;
use super::{ApiLoopKind, ApiLoopSignal, ConversationId, WatchLimits};
use crate::protocol::RequestFacts;

/// So many conversations are remembered.
const MAX_CONVERSATIONS: usize = 64;

/// How long the contexts of a session are.
#[derive(Debug, Default)]
pub(super) struct ContextChurn {
    sizes: Vec<ContextSize>,
    /// How often in a row a context was shortened and was full again.
    futile_shrinks: u32,
    refused: Option<ContextRefusal>,
}

#[derive(Debug)]
struct ContextSize {
    conversation: ConversationId,
    tokens: u64,
    shortened: Option<ShortenedContext>,
}

/// A context has just been shortened, or so it seems.
#[derive(Debug, Clone, Copy)]
struct ShortenedContext {
    from: ConversationId,
    before: u64,
    requests: u32,
}

/// The upstream refused a context as too long.
#[derive(Debug, Clone, Copy)]
struct ContextRefusal {
    tokens: u64,
    times: u32,
    answered_since: u32,
}

impl ContextChurn {
    /// A request came that was not seen before.
    pub(super) fn on_request(
        &mut self,
        talk: ConversationId,
        asked: &RequestFacts,
        limits: &WatchLimits,
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

    /// A conversation that goes on was not replaced by a shorter one: that was another agent's.
    fn mark_continued(&mut self, talk: ConversationId) {
        for size in self
            .sizes
            .iter_mut()
            .filter(|size| size.conversation != talk)
        {
            size.shortened = size.shortened.filter(|shortened| shortened.from != talk);
        }
    }

    /// A new conversation may be the summary of the one that was asked last.
    fn begin_conversation(&mut self, talk: ConversationId, tokens: u64, limits: &WatchLimits) {
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

    /// Whether the context is as long again as before it was shortened.
    fn check_refilled(
        &mut self,
        size: &mut ContextSize,
        limits: &WatchLimits,
    ) -> Option<ApiLoopSignal> {
        let shortened = size.shortened.as_mut()?;
        let (before, requests) = (shortened.before, shortened.requests);
        shortened.requests = requests.saturating_add(1);
        if requests > limits.refill {
            self.futile_shrinks = 0;
            size.shortened = None;
            return None;
        }
        if size.tokens < tenths_of(before, 9) {
            return None;
        }
        size.shortened = None;
        self.futile_shrinks = self.futile_shrinks.saturating_add(1);
        let (count, refill) = (self.futile_shrinks, limits.refill);
        is_due(count, limits.no_shrink).then(|| ApiLoopSignal {
            kind: ApiLoopKind::NoShrink,
            count,
            sentence: format!(
                "The context was shortened {count} times, and each time it was as long again within {refill} requests."
            ),
        })
    }

    /// The upstream refused the last request of the conversation as too long.
    pub(super) fn on_refusal(
        &mut self,
        talk: ConversationId,
        limits: &WatchLimits,
    ) -> Option<ApiLoopSignal> {
        let size = self.sizes.iter().find(|size| size.conversation == talk)?;
        let earlier = self.refused.filter(|earlier| {
            earlier.answered_since < limits.refill && size.tokens >= tenths_of(earlier.tokens, 8)
        });
        let times = earlier.map_or(0, |earlier| earlier.times).saturating_add(1);
        self.refused = Some(ContextRefusal {
            tokens: size.tokens,
            times,
            answered_since: 0,
        });
        is_due(times, limits.no_shrink).then(|| ApiLoopSignal {
            kind: ApiLoopKind::NoShrink,
            count: times,
            sentence: format!("The context was too long {times} times and has not become shorter."),
        })
    }

    /// A request was answered.
    pub(super) fn on_response(&mut self) {
        if let Some(refused) = &mut self.refused {
            refused.answered_since = refused.answered_since.saturating_add(1);
        }
    }
}

/// Whether a context has lost so much that it was shortened on purpose.
fn is_much_shorter(tokens: u64, before: u64, limits: &WatchLimits) -> bool {
    before >= limits.shortest_full && tokens <= tenths_of(before, 6)
}

/// So many tenths.
fn tenths_of(tokens: u64, tenths: u64) -> u64 {
    tokens.saturating_mul(tenths) / 10
}
