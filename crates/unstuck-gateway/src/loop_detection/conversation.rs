//! The state of one conversation of a session, and its progress.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use unstuck_core::Timestamp;

use super::repeats::{RepeatCounter, ToolPace};
use super::seen_hashes::SeenHashes;
use super::signal::is_due;
use super::{ApiLoopKind, ApiLoopSignal, ConversationId, LoopDetectionLimits};
use crate::protocol::{FinishReason, LastTurn, ResponseSummary, ToolCall};

/// The maximum number of remembered conversations.
const MAX_CONVERSATIONS: usize = 64;

/// The maximum number of remembered responses that requests may continue.
const MAX_RESPONSES: usize = 512;

/// The conversations of a session.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    /// The conversations, most recently used last.
    conversations: Vec<(ConversationId, ConversationState)>,
    /// The conversation of each response, by the hash of its id; newest last.
    answers: VecDeque<(u64, ConversationId)>,
}

impl Conversations {
    /// Returns the conversation of a request: that of the response that it continues, or the one with the same
    /// beginning.
    pub(super) fn conversation_of(&self, last: &LastTurn) -> ConversationId {
        let Some(answer) = last.continues else {
            return ConversationId(Some(last.conversation));
        };
        let known = self.answers.iter().rev().find(|(id, _)| *id == answer);
        known.map_or(ConversationId(Some(answer)), |(_, talk)| *talk)
    }

    /// Records a response that requests may continue.
    pub(super) fn note_response(&mut self, talk: ConversationId, said: &ResponseSummary) {
        let Some(id) = said.id_hash else {
            return;
        };
        // Several may begin with the same words: the first response tells them apart.
        let goes_on = self.answers.iter().any(|(_, known)| *known == talk);
        let talk = if goes_on {
            talk
        } else {
            ConversationId(Some(id))
        };
        if self.answers.len() >= MAX_RESPONSES {
            self.answers.pop_front();
        }
        self.answers.push_back((id, talk));
    }

    /// Returns the conversation, and true if it is new.
    pub(super) fn get_or_begin(&mut self, talk: ConversationId) -> (&mut ConversationState, bool) {
        let known = self
            .conversations
            .iter()
            .position(|(known, _)| *known == talk);
        let is_new = known.is_none();
        let conversation = match known {
            Some(at) => self.conversations.remove(at).1,
            None => ConversationState::default(),
        };
        if self.conversations.len() >= MAX_CONVERSATIONS {
            self.conversations.remove(0);
        }
        let (_, conversation) = self.conversations.push_mut((talk, conversation));
        (conversation, is_new)
    }
}

/// The state of a conversation.
#[derive(Debug, Default)]
pub(super) struct ConversationState {
    /// The position at the last request.
    position: Option<u64>,
    /// True if that request was a resend.
    is_resent: bool,
    repeats: RepeatCounter,
    /// The number of messages of the longest request since the last user message.
    max_messages: usize,
    memory: SeenHashes,
    /// The tool calls of the last response, and its time.
    last_calls: Vec<ToolCall>,
    last_response_at: Option<Timestamp>,
    empty: u32,
    /// The number of consecutive responses without anything new.
    stale_responses: u32,
}

impl ConversationState {
    /// Moves to a position; returns false if it is the same as before.
    pub(super) fn move_to(&mut self, position: u64) -> bool {
        self.is_resent = self.position.replace(position) == Some(position);
        !self.is_resent
    }

    /// Records the next request, with the tool results.
    pub(super) fn on_request(
        &mut self,
        last: &LastTurn,
        messages: usize,
        at: Timestamp,
        limits: &LoopDetectionLimits,
    ) -> Option<ApiLoopSignal> {
        if last.results.is_empty() {
            self.repeats.reset();
            self.max_messages = 0;
            return None;
        }
        if last.continues.is_none() && !self.grows_to(messages) {
            return None;
        }
        // Where the provider stores the conversation, the request holds the results alone.
        let calls = if last.calls.is_empty() {
            &self.last_calls
        } else {
            &last.calls
        };
        let turn = hash_of(&(calls, &last.results));
        if self.memory.insert(turn) {
            self.stale_responses = 0;
        }
        let took = self.last_response_at.map(|answered| at.since(answered));
        let pace = match took {
            Some(took) if took >= limits.slow_tool => ToolPace::Slow,
            _ => ToolPace::Quick,
        };
        self.repeats.on_turn(turn, pace, calls, limits)
    }

    /// Returns true if a request with that many messages continues the conversation. Others may begin with the same
    /// words: a request no longer than the longest so far is theirs, unless it is so short that the conversation was
    /// summarized.
    fn grows_to(&mut self, messages: usize) -> bool {
        if messages > self.max_messages {
            self.max_messages = messages;
            return true;
        }
        let is_summary = messages.saturating_mul(2) <= self.max_messages;
        if is_summary {
            self.max_messages = messages;
            self.repeats.reset();
        }
        is_summary
    }

    /// Records a response.
    pub(super) fn on_response(
        &mut self,
        said: &ResponseSummary,
        at: Timestamp,
        limits: &LoopDetectionLimits,
    ) -> Option<ApiLoopSignal> {
        self.last_response_at = Some(at);
        self.last_calls.clone_from(&said.calls);
        if said.error.is_some() {
            return None;
        }
        let stale = self.check_progress(said, limits);
        self.check_empty(said, limits).or(stale)
    }

    fn check_empty(
        &mut self,
        said: &ResponseSummary,
        limits: &LoopDetectionLimits,
    ) -> Option<ApiLoopSignal> {
        let refused = matches!(
            said.finish,
            Some(FinishReason::Refusal | FinishReason::ContentFilter)
        );
        if !said.is_empty() || refused {
            self.empty = 0;
            return None;
        }
        self.empty = self.empty.saturating_add(1);
        let count = self.empty;
        is_due(count, limits.empty_responses).then(|| ApiLoopSignal {
            kind: ApiLoopKind::EmptyResponses,
            count,
            sentence: format!("{count} responses in a row were empty."),
        })
    }

    fn check_progress(
        &mut self,
        said: &ResponseSummary,
        limits: &LoopDetectionLimits,
    ) -> Option<ApiLoopSignal> {
        let text = said.text_bytes > 0
            && self
                .memory
                .insert(hash_of(&(said.text_bytes, said.text_hash)));
        let calls = said
            .calls
            .iter()
            .filter(|call| self.memory.insert(hash_of(call)));
        let calls = calls.count() > 0;
        if text || calls {
            self.stale_responses = 0;
        }
        // Equal requests are expected to get equal responses.
        if text || calls || self.is_resent {
            return None;
        }
        self.stale_responses = self.stale_responses.saturating_add(1);
        let count = self.stale_responses;
        is_due(count, limits.no_progress_responses).then(|| ApiLoopSignal {
            kind: ApiLoopKind::NoProgress,
            count,
            sentence: format!("{count} requests produced no new text, call or result."),
        })
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
