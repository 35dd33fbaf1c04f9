//! One conversation of a session, and whether it gets anywhere.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use unstuck_core::Timestamp;

use super::memory::Memory;
use super::repeats::{Pace, Repeats};
use super::sign::is_due;
use super::{Sign, Talk, WatchLimits, What};
use crate::protocol::{Finish, LastTurn, Said, ToolCall};

/// So many conversations are remembered.
const MOST: usize = 64;

/// So many answers are remembered that requests may continue.
const MOST_ANSWERS: usize = 512;

/// The conversations of a session.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    /// The one that was used last is at the end.
    known: Vec<(Talk, Conversation)>,
    /// Which conversation an answer belongs to, by the hash of its id; the newest is at the end.
    answers: VecDeque<(u64, Talk)>,
}

impl Conversations {
    /// Which conversation a request belongs to: that of the answer that it continues, or the one that began with the same
    /// words.
    pub(super) fn talk(&self, last: &LastTurn) -> Talk {
        let Some(answer) = last.continues else {
            return Talk(Some(last.conversation));
        };
        let known = self.answers.iter().rev().find(|(id, _)| *id == answer);
        known.map_or(Talk(Some(answer)), |(_, talk)| *talk)
    }

    /// Takes note of an answer that requests may continue.
    pub(super) fn answered(&mut self, talk: Talk, said: &Said) {
        let Some(id) = said.id else {
            return;
        };
        // Several may begin with the same words: the first answer tells them apart.
        let goes_on = self.answers.iter().any(|(_, known)| *known == talk);
        let talk = match goes_on {
            true => talk,
            false => Talk(Some(id)),
        };
        if self.answers.len() >= MOST_ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back((id, talk));
    }

    /// The conversation, and whether it is new.
    pub(super) fn of(&mut self, talk: Talk) -> (&mut Conversation, bool) {
        let known = self.known.iter().position(|(known, _)| *known == talk);
        let is_new = known.is_none();
        let conversation = match known {
            Some(at) => self.known.remove(at).1,
            None => Conversation::default(),
        };
        if self.known.len() >= MOST {
            self.known.remove(0);
        }
        let (_, conversation) = self.known.push_mut((talk, conversation));
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
    /// How many messages the longest request had since somebody spoke.
    longest: usize,
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
        messages: usize,
        at: Timestamp,
        limits: &WatchLimits,
    ) -> Option<Sign> {
        if last.results.is_empty() {
            self.repeats.interrupt();
            self.longest = 0;
            return None;
        }
        if last.continues.is_none() && !self.grows_to(messages) {
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

    /// Whether the conversation goes on with a request of so many messages. Others may begin with the same words: what is no
    /// longer than the longest request so far is theirs, unless it is so short that the conversation was summarised.
    fn grows_to(&mut self, messages: usize) -> bool {
        if messages > self.longest {
            self.longest = messages;
            return true;
        }
        let is_summary = messages.saturating_mul(2) <= self.longest;
        if is_summary {
            self.longest = messages;
            self.repeats.interrupt();
        }
        is_summary
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
