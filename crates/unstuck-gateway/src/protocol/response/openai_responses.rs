//! Reads OpenAI Responses responses.

use serde_json::value::RawValue;

use super::anthropic::frame_kind;
use super::{FinishReason, FrameKind, ResponseReader, streamed_tool_calls};
use crate::protocol::json::{
    filled_text, is_filled, is_string, object, text, to_count, to_list, to_object,
};
use crate::protocol::text_hash::TextHash;

object!(Event {
    kind: "type",
    number: "sequence_number",
    response: "response",
    item: "item",
    delta: "delta",
    done: "text" | "refusal" | "arguments" | "input" | "code",
    error: "error",
});

object!(Response {
    id: "id",
    created: "created_at",
    status: "status",
    model: "model",
    output: "output",
    usage: "usage",
    incomplete: "incomplete_details",
    error: "error",
});

object!(Incomplete { reason: "reason" });

object!(Item {
    kind: "type",
    name: "name",
    arguments: "arguments" | "input" | "action",
    content: "content",
    summary: "summary",
});

object!(Part {
    text: "text",
    refusal: "refusal"
});

object!(Usage {
    input: "input_tokens",
    output: "output_tokens",
    details: "input_tokens_details",
});

object!(Details {
    cached: "cached_tokens",
    written: "cache_write_tokens"
});

pub(super) fn read_event(reading: &mut ResponseReader, data: &[u8]) -> Option<FrameKind> {
    let event: Event<'_> = serde_json::from_slice(data).ok()?;
    let kind = match (text(event.kind), event.error) {
        (Some(kind), _) => kind,
        // A proxy's own error may not look like this API's.
        (None, Some(error)) => return Some(reading.set_error(error.get())),
        (None, None) => return None,
    };
    if let Some(number) = to_count(event.number) {
        let last = reading.sequence.replace(number);
        reading.has_gap |= last.is_some_and(|last| number != last.saturating_add(1));
    }
    let frame = match &*kind {
        "response.created" | "response.in_progress" | "response.queued" => {
            read_created(reading, &to_object(event.response));
            FrameKind::Lifecycle
        }
        "response.completed" | "response.incomplete" | "response.cancelled" => {
            read_end(reading, &to_object(event.response));
            FrameKind::End
        }
        "response.failed" => {
            let response: Response<'_> = to_object(event.response);
            read_end(reading, &response);
            reading.set_error(response.error.map_or("{}", RawValue::get))
        }
        "error" => {
            let whole = std::str::from_utf8(data).unwrap_or("{}");
            reading.set_error(event.error.map_or(whole, RawValue::get))
        }
        "response.output_text.delta" => frame_kind(reading.add_text(event.delta)),
        "response.refusal.delta" => {
            reading.set_finish(FinishReason::Refusal);
            frame_kind(reading.add_text(event.delta))
        }
        "response.output_item.added" => added_item_kind(&to_object(event.item)),
        "response.output_item.done" => {
            let item: Item<'_> = to_object(event.item);
            add_call(reading, &item);
            let content = !is_string(item.kind, "reasoning") || is_filled(item.summary);
            frame_kind(content)
        }
        "response.content_part.added" | "response.content_part.done" => FrameKind::Lifecycle,
        kind if kind.ends_with(".delta") => frame_kind(filled_text(event.delta).is_some()),
        kind if kind.ends_with(".done") => frame_kind(filled_text(event.done).is_some()),
        _ => FrameKind::Lifecycle,
    };
    Some(frame)
}

/// Returns the kind of an added item: a message or reasoning begins empty; a tool call is visible at once.
fn added_item_kind(item: &Item<'_>) -> FrameKind {
    frame_kind(!is_string(item.kind, "message") && !is_string(item.kind, "reasoning"))
}

fn read_created(reading: &mut ResponseReader, response: &Response<'_>) {
    reading.set_model(response.model);
    if reading.id.is_none() {
        reading.id = filled_text(response.id).map(Into::into);
        reading.summary.id_hash = reading.id.as_ref().map(|id| TextHash::of(id.as_bytes()));
        reading.created = to_count(response.created).unwrap_or_default();
    }
}

/// Reads the last event, which repeats the whole response for servers that sent no pieces.
fn read_end(reading: &mut ResponseReader, response: &Response<'_>) {
    read_created(reading, response);
    let (has_text, has_calls) = (
        reading.summary.text_bytes > 0,
        !reading.summary.calls.is_empty(),
    );
    for item in to_list::<Item<'_>>(response.output) {
        if !has_text {
            add_text(reading, &item);
        }
        if !has_calls {
            add_call(reading, &item);
        }
    }
    count_tokens(reading, response.usage);
    set_finish(reading, response);
    reading.is_complete = true;
}

pub(super) fn read_body(reading: &mut ResponseReader, body: &[u8]) -> Option<FrameKind> {
    let response: Response<'_> = serde_json::from_slice(body).ok()?;
    if let Some(error) = response.error {
        return Some(reading.set_error(error.get()));
    }
    response.status.or(response.output)?;
    read_end(reading, &response);
    let content = !reading.summary.is_empty();
    Some(if content {
        FrameKind::Content
    } else {
        FrameKind::End
    })
}

fn add_text(reading: &mut ResponseReader, item: &Item<'_>) {
    if !is_string(item.kind, "message") {
        return;
    }
    for part in to_list::<Part<'_>>(item.content) {
        reading.add_text(part.text);
        if reading.add_text(part.refusal) {
            reading.set_finish(FinishReason::Refusal);
        }
    }
}

fn add_call(reading: &mut ResponseReader, item: &Item<'_>) {
    let kind = text(item.kind).unwrap_or_default();
    if !kind.ends_with("_call") {
        return;
    }
    let name = text(item.name).unwrap_or(kind);
    let arguments = match (text(item.arguments), item.arguments) {
        (Some(text), _) => text,
        (None, raw) => raw.map_or("{}", RawValue::get).into(),
    };
    let call = streamed_tool_calls::complete_call(&name, arguments.as_bytes());
    reading.summary.calls.push(call);
}

fn set_finish(reading: &mut ResponseReader, response: &Response<'_>) {
    let incomplete: Incomplete<'_> = to_object(response.incomplete);
    let reason = text(incomplete.reason);
    let status = text(response.status);
    let finish = match (reason.as_deref(), status.as_deref()) {
        (Some("max_output_tokens"), _) => FinishReason::MaxTokens,
        (Some("content_filter"), _) => FinishReason::ContentFilter,
        (Some(other), _) => FinishReason::Other(other.to_owned()),
        (None, Some("completed") | None) if reading.summary.calls.is_empty() => FinishReason::Stop,
        (None, Some("completed") | None) => FinishReason::ToolUse,
        (None, Some(other)) => FinishReason::Other(other.to_owned()),
    };
    reading.set_finish(finish);
}

fn count_tokens(reading: &mut ResponseReader, usage: Option<&RawValue>) {
    if usage.is_none() {
        return;
    }
    let usage: Usage<'_> = to_object(usage);
    let details: Details<'_> = to_object(usage.details);
    let all = to_count(usage.input).unwrap_or_default();
    let cached = to_count(details.cached).unwrap_or_default();
    reading.summary.cache_written = to_count(details.written).unwrap_or_default();
    let output = to_count(usage.output).unwrap_or_default();
    reading.set_tokens(all.saturating_sub(cached), cached, output);
}
