//! OpenAI Chat Completions.

use serde_json::value::RawValue;

use super::messages::content_if;
use super::{Finish, Frame, Reading};
use crate::protocol::json::{count, filled_text, list, object, read, text};

object!(Chunk {
    model: "model",
    choices[Choice]: "choices",
    usage: "usage",
    error: "error",
});

object!(Choice {
    delta{Delta}: "delta" | "message",
    finish_reason: "finish_reason",
});

object!(Delta {
    content: "content",
    refusal: "refusal",
    thoughts: "reasoning_content" | "reasoning",
    calls[Call]: "tool_calls",
    call: "function_call",
});

object!(Part { text: "text" });

object!(Call {
    index: "index",
    function: "function"
});

object!(Function {
    name: "name",
    arguments: "arguments"
});

object!(Usage {
    input: "prompt_tokens",
    output: "completion_tokens",
    details: "prompt_tokens_details",
    hit: "prompt_cache_hit_tokens",
});

object!(Details {
    cached: "cached_tokens",
    written: "cache_write_tokens"
});

pub(super) fn chunk(reading: &mut Reading, data: &[u8]) -> Option<Frame> {
    let chunk: Chunk<'_> = object_of(data)?;
    let content = take(reading, &chunk);
    if let Some(error) = chunk.error {
        return Some(reading.fail(error.get()));
    }
    Some(content_if(content))
}

pub(super) fn whole(reading: &mut Reading, body: &[u8]) -> Option<Frame> {
    let chunk: Chunk<'_> = object_of(body)?;
    let content = take(reading, &chunk);
    if let Some(error) = chunk.error {
        return Some(reading.fail(error.get()));
    }
    if chunk.choices.is_absent() {
        return None;
    }
    reading.complete = reading.ending;
    Some(if content { Frame::Content } else { Frame::End })
}

/// The object, if it is one.
fn object_of(data: &[u8]) -> Option<Chunk<'_>> {
    data.trim_ascii_start().starts_with(b"{").then_some(())?;
    serde_json::from_slice(data).ok()
}

/// Takes in what a chunk, or a whole answer, holds; whether there was something for a user in it.
fn take(reading: &mut Reading, chunk: &Chunk<'_>) -> bool {
    reading.name_model(chunk.model);
    count_tokens(reading, chunk.usage);
    let mut content = false;
    for choice in chunk.choices.iter() {
        content |= take_delta(reading, &choice.delta);
        finish(reading, choice.finish_reason);
    }
    content
}

fn take_delta(reading: &mut Reading, delta: &Delta<'_>) -> bool {
    let mut content = reading.say(delta.content);
    for part in list::<Part<'_>>(delta.content) {
        content |= reading.say(part.text);
    }
    if reading.say(delta.refusal) {
        reading.finish(Finish::Refusal);
        content = true;
    }
    content |= filled_text(delta.thoughts).is_some();
    for (at, call) in delta.calls.iter().enumerate() {
        let number = count(call.index).unwrap_or(at as u64);
        take_call(reading, number, call.function);
        content = true;
    }
    if delta.call.is_some() {
        take_call(reading, 0, delta.call);
        content = true;
    }
    content
}

/// A call, or a piece of one: the first brings the name.
fn take_call(reading: &mut Reading, number: u64, function: Option<&RawValue>) {
    let function: Function<'_> = read(function);
    let calls = &mut reading.said.calls;
    let name = filled_text(function.name);
    // Some repeat the name in every piece.
    if !reading.open.has(number) {
        let name = name.unwrap_or_default();
        reading.open.begin(calls, number, &name);
    }
    let arguments = text(function.arguments).unwrap_or_default();
    reading.open.add(calls, number, arguments.as_bytes());
}

fn finish(reading: &mut Reading, reason: Option<&RawValue>) {
    let Some(reason) = filled_text(reason) else {
        return;
    };
    reading.ending = true;
    reading.finish(match &*reason {
        "stop" => Finish::Stop,
        "length" => Finish::MaxTokens,
        "tool_calls" | "function_call" => Finish::ToolUse,
        "content_filter" => Finish::ContentFilter,
        other => Finish::Other(other.to_owned()),
    });
}

fn count_tokens(reading: &mut Reading, usage: Option<&RawValue>) {
    if usage.is_none() {
        return;
    }
    let usage: Usage<'_> = read(usage);
    let details: Details<'_> = read(usage.details);
    let all = count(usage.input).unwrap_or_default();
    let cached = count(details.cached.or(usage.hit)).unwrap_or_default();
    reading.said.cache_written = count(details.written).unwrap_or_default();
    let output = count(usage.output).unwrap_or_default();
    reading.use_tokens(all.saturating_sub(cached), cached, output);
}
