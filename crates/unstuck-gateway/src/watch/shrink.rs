//! A context that is shortened in vain: full again at once, or too long all the same.

use super::sign::is_due;
use super::{Sign, Talk, WatchLimits, What};
use crate::protocol::Asked;

/// So many conversations are remembered.
const MOST: usize = 64;

/// How long the contexts of a session are.
#[derive(Debug, Default)]
pub(super) struct Shrink {
    sizes: Vec<Size>,
    /// How often in a row a context was shortened and was full again.
    in_vain: u32,
    refused: Option<Refused>,
}

#[derive(Debug)]
struct Size {
    talk: Talk,
    tokens: u64,
    shortened: Option<Shortened>,
}

/// A context has just been shortened, or so it seems.
#[derive(Debug, Clone, Copy)]
struct Shortened {
    from: Talk,
    before: u64,
    requests: u32,
}

/// The upstream refused a context as too long.
#[derive(Debug, Clone, Copy)]
struct Refused {
    tokens: u64,
    times: u32,
    answered_since: u32,
}

impl Shrink {
    /// A request came that was not seen before.
    pub(super) fn asked(
        &mut self,
        talk: Talk,
        asked: &Asked,
        limits: &WatchLimits,
    ) -> Option<Sign> {
        self.not_replaced(talk);
        let tokens = asked.prompt_tokens;
        let Some(at) = self.sizes.iter().position(|size| size.talk == talk) else {
            self.begin(talk, tokens, limits);
            return None;
        };
        let mut size = self.sizes.remove(at);
        let before = std::mem::replace(&mut size.tokens, tokens);
        if is_much_shorter(tokens, before, limits) {
            size.shortened = Some(Shortened {
                from: talk,
                before,
                requests: 0,
            });
        }
        let sign = self.grown(&mut size, limits);
        self.sizes.push(size);
        sign
    }

    /// A conversation that goes on was not replaced by a shorter one: that was another agent's.
    fn not_replaced(&mut self, talk: Talk) {
        for size in self.sizes.iter_mut().filter(|size| size.talk != talk) {
            size.shortened = size.shortened.filter(|shortened| shortened.from != talk);
        }
    }

    /// A new conversation may be the summary of the one that was asked last.
    fn begin(&mut self, talk: Talk, tokens: u64, limits: &WatchLimits) {
        let last = self.sizes.last();
        let shortened = last
            .filter(|last| is_much_shorter(tokens, last.tokens, limits))
            .map(|last| Shortened {
                from: last.talk,
                before: last.tokens,
                requests: 0,
            });
        if self.sizes.len() >= MOST {
            self.sizes.remove(0);
        }
        self.sizes.push(Size {
            talk,
            tokens,
            shortened,
        });
    }

    /// Whether the context is as long again as before it was shortened.
    fn grown(&mut self, size: &mut Size, limits: &WatchLimits) -> Option<Sign> {
        let shortened = size.shortened.as_mut()?;
        let (before, requests) = (shortened.before, shortened.requests);
        shortened.requests = requests.saturating_add(1);
        if requests > limits.refill {
            self.in_vain = 0;
            size.shortened = None;
            return None;
        }
        if size.tokens < share(before, 9) {
            return None;
        }
        size.shortened = None;
        self.in_vain = self.in_vain.saturating_add(1);
        let (count, refill) = (self.in_vain, limits.refill);
        is_due(count, limits.no_shrink).then(|| Sign {
            what: What::NoShrink,
            count,
            sentence: format!(
                "The context was shortened {count} times, and each time it was as long again within {refill} requests."
            ),
        })
    }

    /// The upstream refused the last request of the conversation as too long.
    pub(super) fn too_long(&mut self, talk: Talk, limits: &WatchLimits) -> Option<Sign> {
        let size = self.sizes.iter().find(|size| size.talk == talk)?;
        let earlier = self.refused.filter(|earlier| {
            earlier.answered_since < limits.refill && size.tokens >= share(earlier.tokens, 8)
        });
        let times = earlier.map_or(0, |earlier| earlier.times).saturating_add(1);
        self.refused = Some(Refused {
            tokens: size.tokens,
            times,
            answered_since: 0,
        });
        is_due(times, limits.no_shrink).then(|| Sign {
            what: What::NoShrink,
            count: times,
            sentence: format!("The context was too long {times} times and has not become shorter."),
        })
    }

    /// A request was answered.
    pub(super) fn answered(&mut self) {
        if let Some(refused) = &mut self.refused {
            refused.answered_since = refused.answered_since.saturating_add(1);
        }
    }
}

/// Whether a context has lost so much that it was shortened on purpose.
fn is_much_shorter(tokens: u64, before: u64, limits: &WatchLimits) -> bool {
    before >= limits.shortest_full && tokens <= share(before, 6)
}

/// So many tenths.
fn share(tokens: u64, tenths: u64) -> u64 {
    tokens.saturating_mul(tenths) / 10
}
