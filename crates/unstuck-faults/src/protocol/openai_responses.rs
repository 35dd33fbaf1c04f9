//! Writes answers in the format of OpenAI Responses.

use serde_json::{Value, json};

use super::{CREATED, MessageContent, ModelMessage, REFUSAL, RefusalResponse, TextChunkSpec};

/// Returns the answer as one document.
pub(super) fn document(message: &ModelMessage) -> Value {
    let items: Vec<_> = item(message).into_iter().collect();
    let mut document = response(message, status(message), &json!(items), &usage(message));
    if let MessageContent::Truncated(_) = message.content {
        document["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    document
}

fn status(message: &ModelMessage) -> &'static str {
    match message.content {
        MessageContent::Truncated(_) => "incomplete",
        _ => "completed",
    }
}

/// Returns the answer as numbered events.
pub(super) fn stream(message: &ModelMessage) -> Vec<String> {
    let begun = response(message, "in_progress", &json!([]), &Value::Null);
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    if let Some(item) = item(message) {
        events.extend(item_events(message, &item));
    }
    let ended = format!("response.{}", status(message));
    events.push(json!({"type": ended, "response": document(message)}));
    events.into_iter().enumerate().map(frame).collect()
}

/// Returns the event that ends a stream which failed midway.
pub(super) fn failed_event(
    message: &ModelMessage,
    refused: &RefusalResponse,
    number: usize,
) -> String {
    let mut response = response(message, "failed", &json!([]), &Value::Null);
    let error = &refused.body["error"];
    response["error"] = json!({"code": error["code"], "message": error["message"]});
    frame((
        number,
        json!({"type": "response.failed", "response": response}),
    ))
}

fn frame((number, mut event): (usize, Value)) -> String {
    event["sequence_number"] = json!(number);
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}

fn response(message: &ModelMessage, status: &str, output: &Value, usage: &Value) -> Value {
    json!({
        "id": format!("resp_{:08}", message.number), "object": "response", "created_at": CREATED,
        "status": status, "model": message.model, "output": output, "usage": usage,
        "error": null, "incomplete_details": null, "parallel_tool_calls": true, "tools": [],
    })
}

fn usage(message: &ModelMessage) -> Value {
    let usage = message.usage;
    json!({
        "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total(),
    })
}

fn item(message: &ModelMessage) -> Option<Value> {
    let said = |part: Value| {
        json!({
            "id": format!("msg_{:08}", message.number), "type": "message", "status": status(message),
            "role": "assistant", "content": [part],
        })
    };
    match &message.content {
        MessageContent::Text(text) | MessageContent::Truncated(text) => {
            Some(said(output_text(text)))
        }
        MessageContent::Refusal => Some(said(json!({"type": "refusal", "refusal": REFUSAL}))),
        MessageContent::ToolCall { name, input } => Some(json!({
            "id": format!("fc_{:08}", message.number), "type": "function_call", "status": "completed",
            "call_id": format!("call_{:08}", message.number), "name": name, "arguments": input.to_string(),
        })),
        MessageContent::Empty => None,
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn item_events(message: &ModelMessage, item: &Value) -> Vec<Value> {
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    let middle = match &message.content {
        MessageContent::Text(text) | MessageContent::Truncated(text) => {
            begun["content"] = json!([]);
            text_events(&item["id"], text, message.pieces)
        }
        MessageContent::Refusal => {
            begun["content"] = json!([]);
            refusal_events(&item["id"])
        }
        MessageContent::ToolCall { .. } => {
            begun["arguments"] = json!("");
            argument_events(item)
        }
        MessageContent::Empty => Vec::new(),
    };
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": begun});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    [added].into_iter().chain(middle).chain([done]).collect()
}

fn text_events(id: &Value, text: &str, pieces: TextChunkSpec) -> Vec<Value> {
    let part = |kind: &str, text: &str| {
        json!({
            "type": kind, "item_id": id, "output_index": 0, "content_index": 0, "part": output_text(text),
        })
    };
    let mut events = vec![part("response.content_part.added", "")];
    events.extend(pieces.split(text).into_iter().map(|piece| {
        json!({
            "type": "response.output_text.delta", "item_id": id, "output_index": 0, "content_index": 0,
            "delta": piece,
        })
    }));
    events.push(json!({
        "type": "response.output_text.done", "item_id": id, "output_index": 0, "content_index": 0,
        "text": text,
    }));
    events.push(part("response.content_part.done", text));
    events
}

fn refusal_events(id: &Value) -> Vec<Value> {
    let place = |kind: &str, key: &str| json!({"type": kind, "item_id": id, "output_index": 0, "content_index": 0, key: REFUSAL});
    vec![
        place("response.refusal.delta", "delta"),
        place("response.refusal.done", "refusal"),
    ]
}

fn argument_events(item: &Value) -> Vec<Value> {
    let place = |kind: &str, key: &str| json!({"type": kind, "item_id": item["id"], "output_index": 0, key: item["arguments"]});
    vec![
        place("response.function_call_arguments.delta", "delta"),
        place("response.function_call_arguments.done", "arguments"),
    ]
}
