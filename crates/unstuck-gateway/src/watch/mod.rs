//! What an agent cannot see of itself: seen from the requests and answers of one session.
//!
//! Four of five agents that were tried repeat one call for ever if the model asks for it. A [`Watch`] is told of each request,
//! and of each answer or failure, and gives a [`Sign`] when the same comes back too often. It knows everything by its hash and
//! keeps no text. Work that only looks repetitive goes on: a call whose result changes, a failing test between edits, a slow
//! job that is waited for, a long task whose context is summarised now and then, a handful of subagents.
//!
//! ```
//! use unstuck_core::Timestamp;
//! use unstuck_gateway::protocol::{Asked, Endpoint, Reading};
//! use unstuck_gateway::watch::{Watch, WatchLimits, What};
//!
//! let call = r#"{"role":"assistant","tool_calls":[{"function":{"name":"ls","arguments":"{}"}}]}"#;
//! let turn = format!(r#",{call},{{"role":"tool","content":"no such directory"}}"#);
//! let mut watch = Watch::new(WatchLimits::default());
//! let mut signs = Vec::new();
//! for turns in 0..6 {
//!     let at = Timestamp::from_seconds(1_790_000_000 + turns);
//!     let said = turn.repeat(turns as usize);
//!     let body = format!(r#"{{"messages":[{{"role":"user","content":"Tidy up"}}{said}]}}"#);
//!     let asked = Asked::read(Endpoint::Chat, "/chat/completions", body.as_bytes());
//!     let (talk, sign) = watch.asked(&asked, at);
//!     signs.extend(sign);
//!     let mut reading = Reading::new(Endpoint::Chat);
//!     reading.whole(format!(r#"{{"choices":[{{"message":{call},"finish_reason":"tool_calls"}}]}}"#).as_bytes());
//!     signs.extend(watch.answered(talk, reading.said(), at));
//! }
//! assert_eq!((signs.len(), signs[0].what), (1, What::RepeatedCall));
//! assert_eq!(signs[0].sentence, "The same call of `ls` had the same result 5 times in a row.");
//! ```

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

/// Which conversation of the session a request belongs to, if it is one at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Talk(Option<u64>);

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

    /// A request came. The conversation it belongs to is to be given with its answer or its failure. The same request sent
    /// again counts once.
    pub fn asked(&mut self, asked: &Asked, at: Timestamp) -> (Talk, Option<Sign>) {
        let Some(last) = &asked.last else {
            return (Talk(None), None);
        };
        let talk = self.conversations.talk(last);
        let (conversation, is_new) = self.conversations.of(talk);
        if !conversation.moves_to(last.position) {
            return (talk, None);
        }
        let repeated = conversation.asked(last, asked.messages, at, &self.limits);
        let storm = (is_new && asked.tools).then(|| self.storm.begun(at, &self.limits));
        let full = self.shrink.asked(talk, asked, &self.limits);
        (talk, repeated.or(storm.flatten()).or(full))
    }

    /// The answer came, and is whole.
    pub fn answered(&mut self, talk: Talk, said: &Said, at: Timestamp) -> Option<Sign> {
        talk.0?;
        self.shrink.answered();
        self.conversations.answered(talk, said);
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
