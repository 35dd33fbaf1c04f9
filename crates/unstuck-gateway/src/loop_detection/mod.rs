//! What an agent cannot see of itself: seen from the requests and answers of one session.
//!
//! Four of five agents that were tried repeat one call for ever if the model asks for it. A [`ApiLoopDetector`] is told of each request,
//! and of each answer or failure, and gives a [`ApiLoopSignal`] when the same comes back too often. It knows everything by its hash and
//! keeps no text. Work that only looks repetitive goes on: a call whose result changes, a failing test between edits, a slow
//! job that is waited for, a long task whose context is summarised now and then, a handful of subagents.
//!
//! ```
//! use unstuck_core::Timestamp;
//! use unstuck_gateway::protocol::{RequestFacts, Endpoint, ResponseReader};
//! use unstuck_gateway::watch::{ApiLoopDetector, WatchLimits, ApiLoopKind};
//!
//! let call = r#"{"role":"assistant","tool_calls":[{"function":{"name":"ls","arguments":"{}"}}]}"#;
//! let turn = format!(r#",{call},{{"role":"tool","content":"no such directory"}}"#);
//! let mut watch = ApiLoopDetector::new(WatchLimits::default());
//! let mut signs = Vec::new();
//! for turns in 0..6 {
//!     let at = Timestamp::from_seconds(1_790_000_000 + turns);
//!     let said = turn.repeat(turns as usize);
//!     let body = format!(r#"{{"messages":[{{"role":"user","content":"Tidy up"}}{said}]}}"#);
//!     let asked = RequestFacts::read(Endpoint::Chat, "/chat/completions", body.as_bytes());
//!     let (talk, sign) = watch.asked(&asked, at);
//!     signs.extend(sign);
//!     let mut reading = ResponseReader::new(Endpoint::Chat);
//!     reading.whole(format!(r#"{{"choices":[{{"message":{call},"finish_reason":"tool_calls"}}]}}"#).as_bytes());
//!     signs.extend(watch.answered(talk, reading.said(), at));
//! }
//! assert_eq!((signs.len(), signs[0].what), (1, ApiLoopKind::RepeatedCall));
//! assert_eq!(signs[0].sentence, "The same call of `ls` had the same result 5 times in a row.");
//! ```

mod context_churn;
mod conversation;
mod conversation_storm;
mod limits;
mod repeats;
mod seen_hashes;
mod signal;
#[cfg(test)]
mod tests;

use unstuck_core::{Kind, Timestamp};

use crate::protocol::{RequestFacts, ResponseSummary};
use context_churn::ContextChurn;
use conversation::Conversations;
use conversation_storm::ConversationStorm;

pub use limits::WatchLimits;
pub use signal::{ApiLoopKind, ApiLoopSignal};

/// Which conversation of the session a request belongs to, if it is one at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConversationId(Option<u64>);

/// Watches one session, however many conversations it holds at a time.
#[derive(Debug)]
pub struct ApiLoopDetector {
    limits: WatchLimits,
    conversations: Conversations,
    shrink: ContextChurn,
    storm: ConversationStorm,
}

impl ApiLoopDetector {
    /// Watches from here on.
    pub fn new(limits: WatchLimits) -> Self {
        Self {
            limits,
            conversations: Conversations::default(),
            shrink: ContextChurn::default(),
            storm: ConversationStorm::default(),
        }
    }

    /// Forgets what was seen.
    pub fn reset(&mut self) {
        *self = Self::new(self.limits.clone());
    }

    /// A request came. The conversation it belongs to is to be given with its answer or its failure. The same request sent
    /// again counts once.
    pub fn on_request(
        &mut self,
        asked: &RequestFacts,
        at: Timestamp,
    ) -> (ConversationId, Option<ApiLoopSignal>) {
        let Some(last) = &asked.last else {
            return (ConversationId(None), None);
        };
        let talk = self.conversations.conversation_of(last);
        let (conversation, is_new) = self.conversations.get_or_begin(talk);
        if !conversation.move_to(last.position) {
            return (talk, None);
        }
        let repeated = conversation.on_request(last, asked.messages, at, &self.limits);
        let storm = (is_new && asked.tools).then(|| self.storm.on_begin(at, &self.limits));
        let full = self.shrink.on_request(talk, asked, &self.limits);
        (talk, repeated.or(storm.flatten()).or(full))
    }

    /// The answer came, and is whole.
    pub fn on_response(
        &mut self,
        talk: ConversationId,
        said: &ResponseSummary,
        at: Timestamp,
    ) -> Option<ApiLoopSignal> {
        talk.0?;
        self.shrink.on_response();
        self.conversations.note_response(talk, said);
        let (conversation, _) = self.conversations.get_or_begin(talk);
        conversation.on_response(said, at, &self.limits)
    }

    /// The request failed for good in that way.
    pub fn on_failure(&mut self, talk: ConversationId, kind: Kind) -> Option<ApiLoopSignal> {
        match kind {
            Kind::ContextLimit => self.shrink.on_refusal(talk, &self.limits),
            _ => None,
        }
    }
}
