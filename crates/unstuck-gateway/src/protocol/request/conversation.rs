//! A conversation in any API: its length, its beginning, and its last turn.

use serde_json::value::RawValue;
use unstuck_core::loop_detection::result_signature;

use super::{LastTurn, RequestFacts, ToolCall};
use crate::protocol::json::{self, object};
use crate::protocol::text_hash::{JsonHash, TextHash};

const BYTES_PER_TOKEN: u64 = 4;
/// The approximate cost of a photo at each provider.
const TOKENS_PER_IMAGE: u64 = 1500;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    /// A message with tool results only.
    Tool,
}

/// The state of reading a conversation. Nothing is hashed before the end is known.
#[derive(Debug, Default)]
pub(super) struct ConversationReader<'a> {
    text_bytes: u64,
    images: u64,
    messages: usize,
    role: Option<Speaker>,
    /// The user's messages before the first response.
    beginning: Vec<&'a RawValue>,
    is_answered: bool,
    calls: Vec<RawToolCall<'a>>,
    results: Vec<&'a RawValue>,
    /// The number of tool calls or results in the current message.
    tool_items: usize,
    /// Other data that identifies the state of the conversation.
    state: Option<&'a RawValue>,
}

#[derive(Debug)]
struct RawToolCall<'a> {
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
}

impl<'a> ConversationReader<'a> {
    /// Begins a message.
    pub(super) fn begin_message(&mut self, role: Speaker) {
        self.end_message();
        self.messages += 1;
        self.role = Some(role);
        self.is_answered |= matches!(role, Speaker::Assistant | Speaker::Tool);
    }

    /// Ends the current message. A message without tool calls or results clears the last calls.
    fn end_message(&mut self) {
        let speaks = matches!(self.role, Some(Speaker::User | Speaker::Assistant));
        if speaks && self.tool_items == 0 {
            self.calls.clear();
            self.results.clear();
        }
        self.tool_items = 0;
    }

    /// Adds text that belongs to no message: instructions, tools.
    pub(super) fn add_context(&mut self, value: Option<&RawValue>) {
        let bytes = value.map_or(0, |value| value.get().len());
        self.text_bytes = self.text_bytes.saturating_add(bytes as u64);
    }

    /// Adds the text of a message.
    pub(super) fn add_text(&mut self, value: Option<&'a RawValue>) {
        self.add_context(value);
        if !self.is_answered && self.role == Some(Speaker::User) {
            self.beginning.extend(value);
        }
    }

    pub(super) fn add_image(&mut self) {
        self.images += 1;
    }

    /// Adds a tool call of the model.
    pub(super) fn add_call(&mut self, name: Option<&'a RawValue>, arguments: Option<&'a RawValue>) {
        self.add_context(name);
        self.add_context(arguments);
        self.is_answered = true;
        if !self.results.is_empty() {
            self.calls.clear();
            self.results.clear();
        }
        self.tool_items += 1;
        self.calls.push(RawToolCall { name, arguments });
    }

    /// Adds a tool result.
    pub(super) fn add_result(&mut self, value: Option<&'a RawValue>) {
        self.is_answered = true;
        self.tool_items += 1;
        self.results.extend(value);
    }

    /// Sets other data that identifies the state, such as the response that it continues.
    pub(super) fn set_state(&mut self, state: Option<&'a RawValue>) {
        self.state = state;
    }

    /// Writes the results into the request facts.
    pub(super) fn finish(mut self, asked: &mut RequestFacts) {
        self.end_message();
        asked.messages = self.messages;
        asked.images = self.images > 0;
        asked.prefill = self.role == Some(Speaker::Assistant) && self.calls.is_empty();
        asked.prompt_tokens = (self.text_bytes / BYTES_PER_TOKEN)
            .saturating_add(self.images.saturating_mul(TOKENS_PER_IMAGE));
        asked.last = (self.messages > 0).then(|| self.last_turn());
    }

    fn last_turn(&self) -> LastTurn {
        let answered = !self.results.is_empty();
        let calls = self
            .calls
            .iter()
            .filter(|_| answered)
            .map(RawToolCall::to_tool_call);
        let calls: Vec<_> = calls.collect();
        let results: Vec<_> = self
            .results
            .iter()
            .map(|value| result_hash(value))
            .collect();
        let mut beginning = TextHash::EMPTY;
        for value in &self.beginning {
            beginning.add(value.get().as_bytes());
        }
        let mut position = beginning;
        position.add_number(self.messages as u64);
        position.add_number(self.text_bytes);
        position.add_number(self.images);
        results
            .iter()
            .for_each(|result| position.add_number(*result));
        position.add(self.state.map_or("", RawValue::get).as_bytes());
        LastTurn {
            conversation: beginning.value(),
            calls,
            results,
            position: position.value(),
            continues: json::text(self.state).map(|id| TextHash::of(id.as_bytes())),
        }
    }
}

impl RawToolCall<'_> {
    fn to_tool_call(&self) -> ToolCall {
        ToolCall {
            name: json::text(self.name).unwrap_or_default().into_owned(),
            arguments_hash: arguments_hash(self.arguments),
        }
    }
}

/// Returns the hash of a call's arguments: an object, or a string that holds one.
fn arguments_hash(value: Option<&RawValue>) -> u64 {
    match (json::text(value), value) {
        (Some(text), _) => JsonHash::of(text.as_bytes()),
        (None, Some(value)) => JsonHash::of(value.get().as_bytes()),
        (None, None) => JsonHash::EMPTY.value(),
    }
}

object!(Part { text: "text" });

/// Returns the hash of a result: of its text alone if it has some, since cache markers come and go. Ids and times in it
/// are ignored.
fn result_hash(value: &RawValue) -> u64 {
    let parts = json::to_list::<&RawValue>(Some(value));
    if parts.is_empty() {
        return text_hash(value);
    }
    let mut hash = TextHash::EMPTY;
    for part in parts {
        let text = json::to_object::<Part<'_>>(Some(part)).text;
        hash.add_number(text_hash(text.unwrap_or(part)));
    }
    hash.value()
}

fn text_hash(value: &RawValue) -> u64 {
    match json::text(Some(value)) {
        Some(text) => result_signature(text.as_bytes()),
        None => result_signature(value.get().as_bytes()),
    }
}
