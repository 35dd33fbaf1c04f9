//! A conversation, whatever the API: how long it is, what it began with, and what happened last in it.

use serde_json::value::RawValue;
use unstuck_core::loop_detection::result_signature;

use super::{LastTurn, RequestFacts, ToolCall};
use crate::protocol::hash::{JsonHash, TextHash};
use crate::protocol::json::{self, object};

const BYTES_PER_TOKEN: u64 = 4;
/// About what a photo costs at each provider.
const TOKENS_PER_IMAGE: u64 = 1500;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    /// A message that holds nothing but a tool's result.
    Tool,
}

/// What is kept of a conversation while it is read. Nothing is hashed before the end is known.
#[derive(Debug, Default)]
pub(super) struct ConversationReader<'a> {
    text_bytes: u64,
    images: u64,
    messages: usize,
    role: Option<Speaker>,
    /// The user's words before anybody answered.
    beginning: Vec<&'a RawValue>,
    is_answered: bool,
    calls: Vec<RawToolCall<'a>>,
    results: Vec<&'a RawValue>,
    /// How many calls or results the present message has.
    tool_items: usize,
    /// What else tells where the conversation stands.
    state: Option<&'a RawValue>,
}

#[derive(Debug)]
struct RawToolCall<'a> {
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
}

impl<'a> ConversationReader<'a> {
    /// A message begins.
    pub(super) fn begin_message(&mut self, role: Speaker) {
        self.end_message();
        self.messages += 1;
        self.role = Some(role);
        self.is_answered |= matches!(role, Speaker::Assistant | Speaker::Tool);
    }

    /// The present message is over. One in which no tool was called nor answered leaves the last calls behind.
    fn end_message(&mut self) {
        let speaks = matches!(self.role, Some(Speaker::User | Speaker::Assistant));
        if speaks && self.tool_items == 0 {
            self.calls.clear();
            self.results.clear();
        }
        self.tool_items = 0;
    }

    /// Text that the model is shown but that is nobody's word: instructions, tools.
    pub(super) fn add_context(&mut self, value: Option<&RawValue>) {
        let bytes = value.map_or(0, |value| value.get().len());
        self.text_bytes = self.text_bytes.saturating_add(bytes as u64);
    }

    /// Somebody's words.
    pub(super) fn add_text(&mut self, value: Option<&'a RawValue>) {
        self.add_context(value);
        if !self.is_answered && self.role == Some(Speaker::User) {
            self.beginning.extend(value);
        }
    }

    pub(super) fn add_image(&mut self) {
        self.images += 1;
    }

    /// The model calls a tool.
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

    /// A tool answers. Its words are weighed by whoever reads them.
    pub(super) fn add_result(&mut self, value: Option<&'a RawValue>) {
        self.is_answered = true;
        self.tool_items += 1;
        self.results.extend(value);
    }

    /// What else tells where the conversation stands, such as the answer that it continues.
    pub(super) fn set_state(&mut self, state: Option<&'a RawValue>) {
        self.state = state;
    }

    /// Puts down what was learnt.
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

/// The hash of a call's arguments: an object, or a string that holds one.
fn arguments_hash(value: Option<&RawValue>) -> u64 {
    match (json::text(value), value) {
        (Some(text), _) => JsonHash::of(text.as_bytes()),
        (None, Some(value)) => JsonHash::of(value.get().as_bytes()),
        (None, None) => JsonHash::EMPTY.value(),
    }
}

object!(Part { text: "text" });

/// The hash of a result: of its text alone where it has some, since marks for the cache come and go. Ids and times in it do not
/// count.
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
