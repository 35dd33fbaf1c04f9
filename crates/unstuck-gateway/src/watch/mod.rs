//! What an agent cannot see of itself: seen from the requests and answers of one session.

mod conversation;
mod limits;
mod memory;
mod repeats;
mod shrink;
mod sign;
mod storm;
#[cfg(test)]
mod tests;

use unstuck_core::{Kind, Timestamp};

use crate::protocol::{Asked, Said};
use conversation::Conversations;
use shrink::Shrink;
use storm::Storm;

pub use limits::WatchLimits;
pub use sign::{Sign, What};

/// Which conversation of the session a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Talk(u64);

/// Watches one session, however many conversations it holds at a time.
#[derive(Debug)]
pub struct Watch {
    limits: WatchLimits,
    conversations: Conversations,
    shrink: Shrink,
    storm: Storm,
}

impl Watch {
    /// Watches from here on.
    pub fn new(limits: WatchLimits) -> Self {
        Self {
            limits,
            conversations: Conversations::default(),
            shrink: Shrink::default(),
            storm: Storm::default(),
        }
    }

    /// Forgets what was seen.
    pub fn restart(&mut self) {
        *self = Self::new(self.limits.clone());
    }

    /// A request came. What it is told to be belongs to its answer, or its failure. The same request sent again counts once.
    pub fn asked(&mut self, asked: &Asked, at: Timestamp) -> (Talk, Option<Sign>) {
        let Some(last) = &asked.last else {
            return (Talk(0), None);
        };
        let talk = Talk(last.conversation);
        let (conversation, is_new) = self.conversations.of(talk);
        if !is_new && conversation.position == last.position {
            return (talk, None);
        }
        conversation.position = last.position;
        let repeated = conversation.asked(last, at, &self.limits);
        let storm = (is_new && asked.tools).then(|| self.storm.begun(at, &self.limits));
        let full = self.shrink.asked(talk, asked, &self.limits);
        (talk, repeated.or(storm.flatten()).or(full))
    }

    /// The answer came, and is whole.
    pub fn answered(&mut self, talk: Talk, said: &Said, at: Timestamp) -> Option<Sign> {
        self.shrink.answered();
        let (conversation, _) = self.conversations.of(talk);
        conversation.answered(said, at, &self.limits)
    }

    /// The request failed for good in that way.
    pub fn failed(&mut self, talk: Talk, kind: Kind) -> Option<Sign> {
        match kind {
            Kind::ContextLimit => self.shrink.too_long(talk, &self.limits),
            _ => None,
        }
    }
}
