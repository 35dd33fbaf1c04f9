//! Loop detection from the requests and responses of one session.
//!
//! Four of five tested agents repeat one call forever if the model asks for it. An [`ApiLoopDetector`] receives each
//! request and each response or failure, and returns an [`ApiLoopSignal`] when the same is repeated too often. It works
//! on hashes and keeps no text. Work that only looks repetitive is not reported: a call whose result changes, a failing
//! test between edits, polling of a slow job, a long task whose context is summarized now and then, a handful of
//! subagents.
//!
//! ```
//! use unstuck_core::Timestamp;
//! use unstuck_gateway::protocol::{RequestFacts, LlmApiEndpoint, ResponseReader};
//! use unstuck_gateway::loop_detection::{ApiLoopDetector, LoopDetectionLimits, ApiLoopKind};
//!
//! let call = r#"{"role":"assistant","tool_calls":[{"function":{"name":"ls","arguments":"{}"}}]}"#;
//! let turn = format!(r#",{call},{{"role":"tool","content":"no such directory"}}"#);
//! let mut watch = ApiLoopDetector::new(LoopDetectionLimits::default());
//! let mut signs = Vec::new();
//! for turns in 0..6 {
//!     let at = Timestamp::from_seconds(1_790_000_000 + turns);
//!     let said = turn.repeat(turns as usize);
//!     let body = format!(r#"{{"messages":[{{"role":"user","content":"Tidy up"}}{said}]}}"#);
//!     let asked = RequestFacts::read(LlmApiEndpoint::Chat, "/chat/completions", body.as_bytes());
//!     let (talk, sign) = watch.on_request(&asked, at);
//!     signs.extend(sign);
//!     let mut reading = ResponseReader::new(LlmApiEndpoint::Chat);
//!     reading.read_body(format!(r#"{{"choices":[{{"message":{call},"finish_reason":"tool_calls"}}]}}"#).as_bytes());
//!     signs.extend(watch.on_response(talk, reading.summary(), at));
//! }
//! assert_eq!((signs.len(), signs[0].kind), (1, ApiLoopKind::RepeatedCall));
//! assert_eq!(signs[0].sentence, "The same call of `ls` had the same result 5 times in a row.");
//! ```

mod conversation;
mod futile_compaction;
mod limits;
mod new_conversation_storm;
mod repeats;
mod seen_hashes;
mod signal;
#[cfg(test)]
mod tests;

use unstuck_core::{FailureKind, Timestamp};

use crate::protocol::{RequestFacts, ResponseSummary};
use conversation::Conversations;
use futile_compaction::CompactionTracker;
use new_conversation_storm::NewConversationStorm;

pub use limits::LoopDetectionLimits;
pub use signal::{ApiLoopKind, ApiLoopSignal};

/// The conversation of the session that a request belongs to, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConversationId(Option<u64>);

/// Detects loops of one session with any number of conversations.
#[derive(Debug)]
pub struct ApiLoopDetector {
    limits: LoopDetectionLimits,
    conversations: Conversations,
    shrink: CompactionTracker,
    storm: NewConversationStorm,
}

impl ApiLoopDetector {
    /// Creates a detector.
    pub fn new(limits: LoopDetectionLimits) -> Self {
        Self {
            limits,
            conversations: Conversations::default(),
            shrink: CompactionTracker::default(),
            storm: NewConversationStorm::default(),
        }
    }

    /// Forgets everything seen so far.
    pub fn reset(&mut self) {
        *self = Self::new(self.limits.clone());
    }

    /// Records a request and returns its conversation, to be passed with its response or failure. A resent request is
    /// counted once.
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

    /// Records a complete response.
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

    /// Records a permanently failed request.
    pub fn on_failure(&mut self, talk: ConversationId, kind: FailureKind) -> Option<ApiLoopSignal> {
        match kind {
            FailureKind::ContextLimit => self.shrink.on_refusal(talk, &self.limits),
            _ => None,
        }
    }
}
