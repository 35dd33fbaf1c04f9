//! A conversation, whatever the API: how long it is, what it began with, and what happened last in it.

use serde_json::value::RawValue;
use unstuck_core::stuck::result_signature;

use super::{Asked, LastTurn, ToolCall};
use crate::protocol::hash::{Hash, JsonHash};
use crate::protocol::json::{self, object};

const BYTES_PER_TOKEN: u64 = 4;
/// About what a photo costs at each provider.
const TOKENS_PER_IMAGE: u64 = 1500;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    System,
    User,
    Assistant,
    /// A message that holds nothing but a tool's result.
    Tool,
}

/// What is kept of a conversation while it is read. Nothing is hashed before the end is known.
#[derive(Debug, Default)]
pub(super) struct Conversation<'a> {
    text_bytes: u64,
    images: u64,
    messages: usize,
    role: Option<Role>,
    /// The user's words before anybody answered.
    beginning: Vec<&'a RawValue>,
    begun: bool,
    calls: Vec<Call<'a>>,
    results: Vec<&'a RawValue>,
    /// How many calls or results the present message has.
    moves: usize,
    /// What else tells where the conversation stands.
    state: Option<&'a RawValue>,
}

#[derive(Debug)]
struct Call<'a> {
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
}

impl<'a> Conversation<'a> {
    /// A message begins.
    pub(super) fn begin(&mut self, role: Role) {
        self.end();
        self.messages += 1;
        self.role = Some(role);
        self.begun |= matches!(role, Role::Assistant | Role::Tool);
    }

    /// The present message is over. One in which no tool was called nor answered leaves the last calls behind.
    fn end(&mut self) {
        let speaks = matches!(self.role, Some(Role::User | Role::Assistant));
        if speaks && self.moves == 0 {
            self.calls.clear();
            self.results.clear();
        }
        self.moves = 0;
    }

    /// Text that the model is shown but that is nobody's word: instructions, tools.
    pub(super) fn weigh(&mut self, value: Option<&RawValue>) {
        let bytes = value.map_or(0, |value| value.get().len());
        self.text_bytes = self.text_bytes.saturating_add(bytes as u64);
    }

    /// Somebody's words.
    pub(super) fn say(&mut self, value: Option<&'a RawValue>) {
        self.weigh(value);
        if !self.begun && self.role == Some(Role::User) {
            self.beginning.extend(value);
        }
    }

    pub(super) fn show_image(&mut self) {
        self.images += 1;
    }

    /// The model calls a tool.
    pub(super) fn call(&mut self, name: Option<&'a RawValue>, arguments: Option<&'a RawValue>) {
        self.weigh(name);
        self.weigh(arguments);
        self.begun = true;
        if !self.results.is_empty() {
            self.calls.clear();
            self.results.clear();
        }
        self.moves += 1;
        self.calls.push(Call { name, arguments });
    }

    /// A tool answers. Its words are weighed by whoever reads them.
    pub(super) fn result(&mut self, value: Option<&'a RawValue>) {
        self.begun = true;
        self.moves += 1;
        self.results.extend(value);
    }

    /// What else tells where the conversation stands, such as the answer that it continues.
    pub(super) fn continues(&mut self, state: Option<&'a RawValue>) {
        self.state = state;
    }

    /// Puts down what was learnt.
    pub(super) fn finish(mut self, asked: &mut Asked) {
        self.end();
        asked.messages = self.messages;
        asked.images = self.images > 0;
        asked.prefill = self.role == Some(Role::Assistant) && self.calls.is_empty();
        asked.prompt_tokens = (self.text_bytes / BYTES_PER_TOKEN)
            .saturating_add(self.images.saturating_mul(TOKENS_PER_IMAGE));
        asked.last = (self.messages > 0).then(|| self.last());
    }

    fn last(&self) -> LastTurn {
        let answered = !self.results.is_empty();
        let calls = self.calls.iter().filter(|_| answered).map(Call::read);
        let calls: Vec<_> = calls.collect();
        let results: Vec<_> = self
            .results
            .iter()
            .map(|value| result_hash(value))
            .collect();
        let mut beginning = Hash::EMPTY;
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
            continues: json::text(self.state).map(|id| Hash::of(id.as_bytes())),
        }
    }
}

impl Call<'_> {
    fn read(&self) -> ToolCall {
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
    let parts = json::list::<&RawValue>(Some(value));
    if parts.is_empty() {
        return text_hash(value);
    }
    let mut hash = Hash::EMPTY;
    for part in parts {
        let text = json::read::<Part<'_>>(Some(part)).text;
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
