//! One conversation of a session, and whether it gets anywhere.

use std::hash::{DefaultHasher, Hash, Hasher};

use unstuck_core::Timestamp;

use super::memory::Memory;
use super::repeats::{Pace, Repeats};
use super::sign::is_due;
use super::{Sign, Talk, WatchLimits, What};
use crate::protocol::{Finish, LastTurn, Said, ToolCall};

/// So many conversations are remembered.
const MOST: usize = 64;

/// The conversations of a session; the one that was used last is at the end.
#[derive(Debug, Default)]
pub(super) struct Conversations(Vec<(Talk, Conversation)>);

impl Conversations {
    /// The conversation, and whether it is new.
    pub(super) fn of(&mut self, talk: Talk) -> (&mut Conversation, bool) {
        let known = self.0.iter().position(|(known, _)| *known == talk);
        let is_new = known.is_none();
        let conversation = match known {
            Some(at) => self.0.remove(at).1,
            None => Conversation::default(),
        };
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        let (_, conversation) = self.0.push_mut((talk, conversation));
        (conversation, is_new)
    }
}

/// What is kept of a conversation.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Where it stood at the last request.
    position: Option<u64>,
    /// That request had been sent before.
    again: bool,
    repeats: Repeats,
    memory: Memory,
    /// What the last answer called, and when it came.
    called: Vec<ToolCall>,
    answered: Option<Timestamp>,
    empty: u32,
    /// How many answers in a row brought nothing new.
    nothing_new: u32,
}

impl Conversation {
    /// A request came; whether it is not the same as the last one.
    pub(super) fn moves_to(&mut self, position: u64) -> bool {
        self.again = self.position.replace(position) == Some(position);
        !self.again
    }

    /// The next request came, with what the tools answered.
    pub(super) fn asked(
        &mut self,
        last: &LastTurn,
        at: Timestamp,
        limits: &WatchLimits,
    ) -> Option<Sign> {
        if last.results.is_empty() {
            self.repeats.interrupt();
            return None;
        }
        // Where the provider keeps the conversation, the request holds the results alone.
        let calls = match last.calls.is_empty() {
            true => &self.called,
            false => &last.calls,
        };
        let turn = hash(&(calls, &last.results));
        if self.memory.is_new(turn) {
            self.nothing_new = 0;
        }
        let took = self.answered.map(|answered| at.since(answered));
        let pace = match took {
            Some(took) if took >= limits.slow_tool => Pace::Slow,
            _ => Pace::Quick,
        };
        self.repeats.turn(turn, pace, calls, limits)
    }

    /// An answer came.
    pub(super) fn answered(
        &mut self,
        said: &Said,
        at: Timestamp,
        limits: &WatchLimits,
    ) -> Option<Sign> {
        self.answered = Some(at);
        self.called.clone_from(&said.calls);
        if said.error.is_some() {
            return None;
        }
        let stale = self.is_stale(said, limits);
        self.is_empty(said, limits).or(stale)
    }

    fn is_empty(&mut self, said: &Said, limits: &WatchLimits) -> Option<Sign> {
        let refused = matches!(said.finish, Some(Finish::Refusal | Finish::ContentFilter));
        if !said.is_empty() || refused {
            self.empty = 0;
            return None;
        }
        self.empty = self.empty.saturating_add(1);
        let count = self.empty;
        is_due(count, limits.empty_answers).then(|| Sign {
            what: What::EmptyAnswers,
            count,
            sentence: format!("{count} answers in a row were empty."),
        })
    }

    fn is_stale(&mut self, said: &Said, limits: &WatchLimits) -> Option<Sign> {
        let text =
            said.text_bytes > 0 && self.memory.is_new(hash(&(said.text_bytes, said.text_hash)));
        let calls = said
            .calls
            .iter()
            .filter(|call| self.memory.is_new(hash(call)));
        let calls = calls.count() > 0;
        if text || calls {
            self.nothing_new = 0;
        }
        // Whoever asks the same must expect the same answer.
        if text || calls || self.again {
            return None;
        }
        self.nothing_new = self.nothing_new.saturating_add(1);
        let count = self.nothing_new;
        is_due(count, limits.no_progress).then(|| Sign {
            what: What::NoProgress,
            count,
            sentence: format!(
                "{count} requests brought no new text, no new call and no new result."
            ),
        })
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
