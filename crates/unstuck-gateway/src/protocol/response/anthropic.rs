//! Reads Anthropic Messages responses.

use serde_json::value::RawValue;

use super::{FinishReason, FrameKind, ResponseReader, streamed_tool_calls};
use crate::protocol::json::{filled_text, is_string, object, text, to_count, to_list, to_object};

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

pub(super) fn read_event(reading: &mut ResponseReader, data: &[u8]) -> Option<FrameKind> {
    let event: Event<'_> = serde_json::from_slice(data).ok()?;
    let kind = match (text(event.kind), event.error) {
        (Some(kind), _) => kind,
        // A proxy's own error may not look like this API's.
        (None, Some(error)) => return Some(reading.set_error(error.get())),
        (None, None) => return None,
    };
    let frame = match &*kind {
        "ping" => FrameKind::Ping,
        "message_start" => {
            let message: Message<'_> = to_object(event.message);
            reading.set_model(message.model);
            count_tokens(reading, message.usage);
            FrameKind::Lifecycle
        }
        "content_block_start" => read_start(reading, &event),
        "content_block_delta" => read_delta(reading, &event),
        "content_block_stop" => {
            let index = to_count(event.index).unwrap_or_default();
            reading
                .open_calls
                .end(&mut reading.summary.calls, index, b"{}");
            FrameKind::Lifecycle
        }
        "message_delta" => {
            set_finish(reading, to_object::<Delta<'_>>(event.delta).stop_reason);
            count_tokens(reading, event.usage);
            FrameKind::Lifecycle
        }
        "message_stop" => {
            reading.is_complete = true;
            FrameKind::End
        }
        "error" => reading.set_error(event.error.map_or("{}", RawValue::get)),
        _ => FrameKind::Lifecycle,
    };
    Some(frame)
}

fn read_start(reading: &mut ResponseReader, event: &Event<'_>) -> FrameKind {
    let block: Block<'_> = to_object(event.block);
    let kind = text(block.kind).unwrap_or_default();
    match &*kind {
        "tool_use" => {
            let index = to_count(event.index).unwrap_or_default();
            let name = text(block.name).unwrap_or_default();
            reading
                .open_calls
                .begin(&mut reading.summary.calls, index, &name);
            FrameKind::Content
        }
        "text" | "thinking" => {
            let thinks = filled_text(block.thinking).is_some();
            frame_kind(reading.add_text(block.text) || thinks)
        }
        _ => FrameKind::Content,
    }
}

fn read_delta(reading: &mut ResponseReader, event: &Event<'_>) -> FrameKind {
    let delta: Delta<'_> = to_object(event.delta);
    let kind = text(delta.kind).unwrap_or_default();
    match &*kind {
        "text_delta" => frame_kind(reading.add_text(delta.text)),
        "thinking_delta" => frame_kind(filled_text(delta.thinking).is_some()),
        "input_json_delta" => {
            let index = to_count(event.index).unwrap_or_default();
            let piece = text(delta.json).unwrap_or_default();
            let calls = &mut reading.summary.calls;
            reading
                .open_calls
                .add_arguments(calls, index, piece.as_bytes());
            frame_kind(!piece.is_empty())
        }
        _ => FrameKind::Content,
    }
}

pub(super) fn frame_kind(content: bool) -> FrameKind {
    if content {
        FrameKind::Content
    } else {
        FrameKind::Lifecycle
    }
}

fn set_finish(reading: &mut ResponseReader, reason: Option<&RawValue>) {
    let Some(reason) = text(reason) else { return };
    reading.is_end_announced = true;
    reading.set_finish(match &*reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::MaxTokens,
        "tool_use" => FinishReason::ToolUse,
        "refusal" => FinishReason::Refusal,
        other => FinishReason::Other(other.to_owned()),
    });
}

/// Adds the token counts: they are totals, and omitted ones keep their value.
fn count_tokens(reading: &mut ResponseReader, usage: Option<&RawValue>) {
    if usage.is_none() {
        return;
    }
    let usage: Usage<'_> = to_object(usage);
    let known = reading.summary.tokens.unwrap_or_default();
    let before = reading.summary.cache_written;
    let written = to_count(usage.written).unwrap_or(before);
    let plain = to_count(usage.input).unwrap_or(known.input.saturating_sub(before));
    reading.summary.cache_written = written;
    reading.set_tokens(
        plain.saturating_add(written),
        to_count(usage.cached).unwrap_or(known.cached),
        to_count(usage.output).unwrap_or(known.output),
    );
}

pub(super) fn read_body(reading: &mut ResponseReader, body: &[u8]) -> Option<FrameKind> {
    let message: Message<'_> = serde_json::from_slice(body).ok()?;
    if is_string(message.kind, "error") || (message.error.is_some() && message.content.is_none()) {
        return Some(reading.set_error(message.error.map_or("{}", RawValue::get)));
    }
    message.content?;
    reading.set_model(message.model);
    count_tokens(reading, message.usage);
    let mut content = false;
    for block in to_list::<Block<'_>>(message.content) {
        if is_string(block.kind, "tool_use") {
            let name = text(block.name).unwrap_or_default();
            let input = block.input.map_or("{}", RawValue::get);
            reading
                .summary
                .calls
                .push(streamed_tool_calls::complete_call(&name, input.as_bytes()));
            content = true;
        }
        content |= reading.add_text(block.text);
    }
    set_finish(reading, message.stop_reason);
    reading.is_complete = message.stop_reason.is_some();
    Some(if content {
        FrameKind::Content
    } else {
        FrameKind::End
    })
}
