//! OpenAI Responses.

use serde_json::value::RawValue;

use super::messages::content_if;
use super::{Finish, Frame, Reading, calls};
use crate::protocol::hash::Hash;
use crate::protocol::json::{count, filled_text, is, is_filled, list, object, read, text};

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

pub(super) fn event(reading: &mut Reading, data: &[u8]) -> Option<Frame> {
    let event: Event<'_> = serde_json::from_slice(data).ok()?;
    let kind = match (text(event.kind), event.error) {
        (Some(kind), _) => kind,
        // A proxy's own error need not look like this API's.
        (None, Some(error)) => return Some(reading.fail(error.get())),
        (None, None) => return None,
    };
    if let Some(number) = count(event.number) {
        let last = reading.sequence.replace(number);
        reading.has_gap |= last.is_some_and(|last| number != last.saturating_add(1));
    }
    let frame = match &*kind {
        "response.created" | "response.in_progress" | "response.queued" => {
            begin(reading, &read(event.response));
            Frame::Lifecycle
        }
        "response.completed" | "response.incomplete" | "response.cancelled" => {
            end(reading, &read(event.response));
            Frame::End
        }
        "response.failed" => {
            let response: Response<'_> = read(event.response);
            end(reading, &response);
            reading.fail(response.error.map_or("{}", RawValue::get))
        }
        "error" => {
            let whole = std::str::from_utf8(data).unwrap_or("{}");
            reading.fail(event.error.map_or(whole, RawValue::get))
        }
        "response.output_text.delta" => content_if(reading.say(event.delta)),
        "response.refusal.delta" => {
            reading.finish(Finish::Refusal);
            content_if(reading.say(event.delta))
        }
        "response.output_item.added" => added(&read(event.item)),
        "response.output_item.done" => {
            let item: Item<'_> = read(event.item);
            take_call(reading, &item);
            let content = !is(item.kind, "reasoning") || is_filled(item.summary);
            content_if(content)
        }
        "response.content_part.added" | "response.content_part.done" => Frame::Lifecycle,
        kind if kind.ends_with(".delta") => content_if(filled_text(event.delta).is_some()),
        kind if kind.ends_with(".done") => content_if(filled_text(event.done).is_some()),
        _ => Frame::Lifecycle,
    };
    Some(frame)
}

/// A message or a thought begins empty; the call of a tool shows already.
fn added(item: &Item<'_>) -> Frame {
    content_if(!is(item.kind, "message") && !is(item.kind, "reasoning"))
}

fn begin(reading: &mut Reading, response: &Response<'_>) {
    reading.name_model(response.model);
    if reading.id.is_none() {
        reading.id = filled_text(response.id).map(Into::into);
        reading.said.id = reading.id.as_ref().map(|id| Hash::of(id.as_bytes()));
        reading.created = count(response.created).unwrap_or_default();
    }
}

/// The last event holds the whole answer once more, for those who sent no pieces.
fn end(reading: &mut Reading, response: &Response<'_>) {
    begin(reading, response);
    let (has_text, has_calls) = (reading.said.text_bytes > 0, !reading.said.calls.is_empty());
    for item in list::<Item<'_>>(response.output) {
        if !has_text {
            take_text(reading, &item);
        }
        if !has_calls {
            take_call(reading, &item);
        }
    }
    count_tokens(reading, response.usage);
    finish(reading, response);
    reading.complete = true;
}

pub(super) fn whole(reading: &mut Reading, body: &[u8]) -> Option<Frame> {
    let response: Response<'_> = serde_json::from_slice(body).ok()?;
    if let Some(error) = response.error {
        return Some(reading.fail(error.get()));
    }
    response.status.or(response.output)?;
    end(reading, &response);
    let content = !reading.said.is_empty();
    Some(if content { Frame::Content } else { Frame::End })
}

fn take_text(reading: &mut Reading, item: &Item<'_>) {
    if !is(item.kind, "message") {
        return;
    }
    for part in list::<Part<'_>>(item.content) {
        reading.say(part.text);
        if reading.say(part.refusal) {
            reading.finish(Finish::Refusal);
        }
    }
}

fn take_call(reading: &mut Reading, item: &Item<'_>) {
    let kind = text(item.kind).unwrap_or_default();
    if !kind.ends_with("_call") {
        return;
    }
    let name = text(item.name).unwrap_or(kind);
    let arguments = match (text(item.arguments), item.arguments) {
        (Some(text), _) => text,
        (None, raw) => raw.map_or("{}", RawValue::get).into(),
    };
    let call = calls::whole(&name, arguments.as_bytes());
    reading.said.calls.push(call);
}

fn finish(reading: &mut Reading, response: &Response<'_>) {
    let incomplete: Incomplete<'_> = read(response.incomplete);
    let reason = text(incomplete.reason);
    let status = text(response.status);
    let finish = match (reason.as_deref(), status.as_deref()) {
        (Some("max_output_tokens"), _) => Finish::MaxTokens,
        (Some("content_filter"), _) => Finish::ContentFilter,
        (Some(other), _) => Finish::Other(other.to_owned()),
        (None, Some("completed") | None) if reading.said.calls.is_empty() => Finish::Stop,
        (None, Some("completed") | None) => Finish::ToolUse,
        (None, Some(other)) => Finish::Other(other.to_owned()),
    };
    reading.finish(finish);
}

fn count_tokens(reading: &mut Reading, usage: Option<&RawValue>) {
    if usage.is_none() {
        return;
    }
    let usage: Usage<'_> = read(usage);
    let details: Details<'_> = read(usage.details);
    let all = count(usage.input).unwrap_or_default();
    let cached = count(details.cached).unwrap_or_default();
    reading.said.cache_written = count(details.written).unwrap_or_default();
    let output = count(usage.output).unwrap_or_default();
    reading.use_tokens(all.saturating_sub(cached), cached, output);
}
