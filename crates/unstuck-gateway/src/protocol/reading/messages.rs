//! Anthropic Messages.

use serde_json::value::RawValue;

use super::{Finish, Frame, Reading, calls};
use crate::protocol::json::{count, filled_text, is, list, object, read, text};

object!(Event {
    kind: "type",
    message: "message",
    index: "index",
    block: "content_block",
    delta: "delta",
    usage: "usage",
    error: "error",
});

object!(Message {
    kind: "type",
    model: "model",
    content: "content",
    stop_reason: "stop_reason",
    usage: "usage",
    error: "error",
});

object!(Block {
    kind: "type",
    text: "text",
    thinking: "thinking",
    name: "name",
    input: "input",
});

object!(Delta {
    kind: "type",
    text: "text",
    thinking: "thinking",
    json: "partial_json",
    stop_reason: "stop_reason",
});

object!(Usage {
    input: "input_tokens",
    written: "cache_creation_input_tokens",
    cached: "cache_read_input_tokens",
    output: "output_tokens",
});

pub(super) fn event(reading: &mut Reading, data: &[u8]) -> Option<Frame> {
    let event: Event<'_> = serde_json::from_slice(data).ok()?;
    let kind = match (text(event.kind), event.error) {
        (Some(kind), _) => kind,
        // A proxy's own error need not look like this API's.
        (None, Some(error)) => return Some(reading.fail(error.get())),
        (None, None) => return None,
    };
    let frame = match &*kind {
        "ping" => Frame::Ping,
        "message_start" => {
            let message: Message<'_> = read(event.message);
            reading.name_model(message.model);
            count_tokens(reading, message.usage);
            Frame::Lifecycle
        }
        "content_block_start" => start(reading, &event),
        "content_block_delta" => delta(reading, &event),
        "content_block_stop" => {
            let index = count(event.index).unwrap_or_default();
            reading.open.end(&mut reading.said.calls, index, b"{}");
            Frame::Lifecycle
        }
        "message_delta" => {
            finish(reading, read::<Delta<'_>>(event.delta).stop_reason);
            count_tokens(reading, event.usage);
            Frame::Lifecycle
        }
        "message_stop" => {
            reading.complete = true;
            Frame::End
        }
        "error" => reading.fail(event.error.map_or("{}", RawValue::get)),
        _ => Frame::Lifecycle,
    };
    Some(frame)
}

fn start(reading: &mut Reading, event: &Event<'_>) -> Frame {
    let block: Block<'_> = read(event.block);
    let kind = text(block.kind).unwrap_or_default();
    match &*kind {
        "tool_use" => {
            let index = count(event.index).unwrap_or_default();
            let name = text(block.name).unwrap_or_default();
            reading.open.begin(&mut reading.said.calls, index, &name);
            Frame::Content
        }
        "text" | "thinking" => {
            let thinks = filled_text(block.thinking).is_some();
            content_if(reading.say(block.text) || thinks)
        }
        _ => Frame::Content,
    }
}

fn delta(reading: &mut Reading, event: &Event<'_>) -> Frame {
    let delta: Delta<'_> = read(event.delta);
    let kind = text(delta.kind).unwrap_or_default();
    match &*kind {
        "text_delta" => content_if(reading.say(delta.text)),
        "thinking_delta" => content_if(filled_text(delta.thinking).is_some()),
        "input_json_delta" => {
            let index = count(event.index).unwrap_or_default();
            let piece = text(delta.json).unwrap_or_default();
            let calls = &mut reading.said.calls;
            reading.open.add(calls, index, piece.as_bytes());
            content_if(!piece.is_empty())
        }
        _ => Frame::Content,
    }
}

pub(super) fn content_if(content: bool) -> Frame {
    match content {
        true => Frame::Content,
        false => Frame::Lifecycle,
    }
}

fn finish(reading: &mut Reading, reason: Option<&RawValue>) {
    let Some(reason) = text(reason) else { return };
    reading.ending = true;
    reading.finish(match &*reason {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::MaxTokens,
        "tool_use" => Finish::ToolUse,
        "refusal" => Finish::Refusal,
        other => Finish::Other(other.to_owned()),
    });
}

/// The counts are totals, and those that are left out later stay as they were.
fn count_tokens(reading: &mut Reading, usage: Option<&RawValue>) {
    if usage.is_none() {
        return;
    }
    let usage: Usage<'_> = read(usage);
    let known = reading.said.tokens.unwrap_or_default();
    let before = reading.said.cache_written;
    let written = count(usage.written).unwrap_or(before);
    let plain = count(usage.input).unwrap_or(known.input.saturating_sub(before));
    reading.said.cache_written = written;
    reading.use_tokens(
        plain.saturating_add(written),
        count(usage.cached).unwrap_or(known.cached),
        count(usage.output).unwrap_or(known.output),
    );
}

pub(super) fn whole(reading: &mut Reading, body: &[u8]) -> Option<Frame> {
    let message: Message<'_> = serde_json::from_slice(body).ok()?;
    if is(message.kind, "error") || (message.error.is_some() && message.content.is_none()) {
        return Some(reading.fail(message.error.map_or("{}", RawValue::get)));
    }
    message.content?;
    reading.name_model(message.model);
    count_tokens(reading, message.usage);
    let mut content = false;
    for block in list::<Block<'_>>(message.content) {
        if is(block.kind, "tool_use") {
            let name = text(block.name).unwrap_or_default();
            let input = block.input.map_or("{}", RawValue::get);
            reading
                .said
                .calls
                .push(calls::whole(&name, input.as_bytes()));
            content = true;
        }
        content |= reading.say(block.text);
    }
    finish(reading, message.stop_reason);
    reading.complete = message.stop_reason.is_some();
    Some(if content { Frame::Content } else { Frame::End })
}
