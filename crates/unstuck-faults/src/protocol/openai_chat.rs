//! Writes answers in the format of OpenAI Chat Completions.

use serde_json::{Value, json};

use super::{CREATED, MessageContent, ModelCall, ModelMessage, REFUSAL, text_chunks};

/// Returns the answer as one document.
pub(super) fn document(message: &ModelMessage) -> Value {
    json!({
        "id": id(message), "object": "chat.completion", "created": CREATED, "model": message.model,
        "choices": [{
            "index": 0, "message": message_body(message), "logprobs": null,
            "finish_reason": finish_reason(&message.content),
        }],
        "usage": usage(message),
    })
}

/// Returns the answer as events, ended by `[DONE]`.
pub(super) fn stream(message: &ModelMessage, call: &ModelCall) -> Vec<String> {
    let framed = |delta: &Value| frame(&chunk(message, delta, None));
    let mut frames = vec![framed(&json!({"role": "assistant", "content": ""}))];
    match &message.content {
        MessageContent::Text(text) | MessageContent::Truncated(text) => {
            let said = message.pieces.split(text);
            frames.extend(text_chunks::frames(&said, |piece| {
                framed(&json!({"content": piece}))
            }));
        }
        MessageContent::Refusal => frames.push(framed(&json!({"refusal": REFUSAL}))),
        MessageContent::ToolCall { name, input } => {
            let mut call = tool_call(message, name, input);
            call["index"] = json!(0);
            frames.push(framed(&json!({"tool_calls": [call]})));
        }
        MessageContent::Empty => {}
    }
    let reason = finish_reason(&message.content);
    frames.push(frame(&chunk(message, &json!({}), Some(reason))));
    if call.wants_usage {
        frames.push(frame(&json!({
            "id": id(message), "object": "chat.completion.chunk", "created": CREATED,
            "model": message.model, "choices": [], "usage": usage(message),
        })));
    }
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

fn frame(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

fn id(message: &ModelMessage) -> String {
    format!("chatcmpl-{:08}", message.number)
}

fn chunk(message: &ModelMessage, delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({
        "id": id(message), "object": "chat.completion.chunk", "created": CREATED, "model": message.model,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}],
    })
}

fn message_body(message: &ModelMessage) -> Value {
    let (content, refusal) = match &message.content {
        MessageContent::Text(text) | MessageContent::Truncated(text) => (Some(text.as_str()), None),
        MessageContent::Refusal => (None, Some(REFUSAL)),
        MessageContent::Empty => (Some(""), None),
        MessageContent::ToolCall { .. } => (None, None),
    };
    let mut spoken = json!({"role": "assistant", "content": content, "refusal": refusal});
    if let MessageContent::ToolCall { name, input } = &message.content {
        spoken["tool_calls"] = json!([tool_call(message, name, input)]);
    }
    spoken
}

fn tool_call(message: &ModelMessage, name: &str, input: &Value) -> Value {
    json!({
        "id": format!("call_{:08}", message.number), "type": "function",
        "function": {"name": name, "arguments": input.to_string()},
    })
}

fn finish_reason(content: &MessageContent) -> &'static str {
    match content {
        MessageContent::Text(_) | MessageContent::Empty => "stop",
        MessageContent::Truncated(_) => "length",
        MessageContent::Refusal => "content_filter",
        MessageContent::ToolCall { .. } => "tool_calls",
    }
}

fn usage(message: &ModelMessage) -> Value {
    let usage = message.usage;
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}
