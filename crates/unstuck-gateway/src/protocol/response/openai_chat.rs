//! Reads OpenAI Chat Completions responses.

use serde_json::value::RawValue;

use super::anthropic::frame_kind;
use super::{FinishReason, FrameKind, ResponseReader};
use crate::protocol::json::{filled_text, object, text, to_count, to_list, to_object};

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

pub(super) fn read_chunk(reading: &mut ResponseReader, data: &[u8]) -> Option<FrameKind> {
    let chunk: Chunk<'_> = parse_chunk(data)?;
    let content = add_chunk(reading, &chunk);
    if let Some(error) = chunk.error {
        return Some(reading.set_error(error.get()));
    }
    Some(frame_kind(content))
}

pub(super) fn read_body(reading: &mut ResponseReader, body: &[u8]) -> Option<FrameKind> {
    let chunk: Chunk<'_> = parse_chunk(body)?;
    let content = add_chunk(reading, &chunk);
    if let Some(error) = chunk.error {
        return Some(reading.set_error(error.get()));
    }
    if chunk.choices.is_absent() {
        return None;
    }
    reading.is_complete = reading.is_end_announced;
    Some(if content {
        FrameKind::Content
    } else {
        FrameKind::End
    })
}

/// Parses the object, if it is one.
fn parse_chunk(data: &[u8]) -> Option<Chunk<'_>> {
    data.trim_ascii_start().starts_with(b"{").then_some(())?;
    serde_json::from_slice(data).ok()
}

/// Adds a chunk or a whole response; returns true if it has content visible to a user.
fn add_chunk(reading: &mut ResponseReader, chunk: &Chunk<'_>) -> bool {
    reading.set_model(chunk.model);
    count_tokens(reading, chunk.usage);
    let mut content = false;
    for choice in chunk.choices.iter() {
        content |= add_delta(reading, &choice.delta);
        set_finish(reading, choice.finish_reason);
    }
    content
}

fn add_delta(reading: &mut ResponseReader, delta: &Delta<'_>) -> bool {
    let mut content = reading.add_text(delta.content);
    for part in to_list::<Part<'_>>(delta.content) {
        content |= reading.add_text(part.text);
    }
    if reading.add_text(delta.refusal) {
        reading.set_finish(FinishReason::Refusal);
        content = true;
    }
    content |= filled_text(delta.thoughts).is_some();
    for (at, call) in delta.calls.iter().enumerate() {
        let number = to_count(call.index).unwrap_or(at as u64);
        add_call(reading, number, call.function);
        content = true;
    }
    if delta.call.is_some() {
        add_call(reading, 0, delta.call);
        content = true;
    }
    content
}

/// Adds a call or a piece of one: the first piece has the name.
fn add_call(reading: &mut ResponseReader, number: u64, function: Option<&RawValue>) {
    let function: Function<'_> = to_object(function);
    let calls = &mut reading.summary.calls;
    let name = filled_text(function.name);
    // Some servers repeat the name in every piece.
    if !reading.open_calls.contains(number) {
        let name = name.unwrap_or_default();
        reading.open_calls.begin(calls, number, &name);
    }
    let arguments = text(function.arguments).unwrap_or_default();
    reading
        .open_calls
        .add_arguments(calls, number, arguments.as_bytes());
}

fn set_finish(reading: &mut ResponseReader, reason: Option<&RawValue>) {
    let Some(reason) = filled_text(reason) else {
        return;
    };
    reading.is_end_announced = true;
    reading.set_finish(match &*reason {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::MaxTokens,
        "tool_calls" | "function_call" => FinishReason::ToolUse,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    });
}

fn count_tokens(reading: &mut ResponseReader, usage: Option<&RawValue>) {
    if usage.is_none() {
        return;
    }
    let usage: Usage<'_> = to_object(usage);
    let details: Details<'_> = to_object(usage.details);
    let all = to_count(usage.input).unwrap_or_default();
    let cached = to_count(details.cached.or(usage.hit)).unwrap_or_default();
    reading.summary.cache_written = to_count(details.written).unwrap_or_default();
    let output = to_count(usage.output).unwrap_or_default();
    reading.set_tokens(all.saturating_sub(cached), cached, output);
}
