//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::{CREATED, Call, Content, Message, REFUSAL, pieces};

/// The answer as one document.
pub(super) fn document(message: &Message) -> Value {
    json!({
        "id": id(message), "object": "chat.completion", "created": CREATED, "model": message.model,
        "choices": [{
            "index": 0, "message": spoken(message), "logprobs": null,
            "finish_reason": finish_reason(&message.content),
        }],
        "usage": usage(message),
    })
}

/// The answer as events, ended by `[DONE]`.
pub(super) fn stream(message: &Message, call: &Call) -> Vec<String> {
    let framed = |delta: &Value| frame(&chunk(message, delta, None));
    let mut frames = vec![framed(&json!({"role": "assistant", "content": ""}))];
    match &message.content {
        Content::Text(text) | Content::CutShort(text) => {
            let said = message.pieces.of(text);
            frames.extend(pieces::frames(&said, |piece| {
                framed(&json!({"content": piece}))
            }));
        }
        Content::Refusal => frames.push(framed(&json!({"refusal": REFUSAL}))),
        Content::ToolCall { name, input } => {
            let mut call = tool_call(message, name, input);
            call["index"] = json!(0);
            frames.push(framed(&json!({"tool_calls": [call]})));
        }
        Content::Nothing => {}
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

fn id(message: &Message) -> String {
    format!("chatcmpl-{:08}", message.number)
}

fn chunk(message: &Message, delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({
        "id": id(message), "object": "chat.completion.chunk", "created": CREATED, "model": message.model,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}],
    })
}

fn spoken(message: &Message) -> Value {
    let (content, refusal) = match &message.content {
        Content::Text(text) | Content::CutShort(text) => (Some(text.as_str()), None),
        Content::Refusal => (None, Some(REFUSAL)),
        Content::Nothing => (Some(""), None),
        Content::ToolCall { .. } => (None, None),
    };
    let mut spoken = json!({"role": "assistant", "content": content, "refusal": refusal});
    if let Content::ToolCall { name, input } = &message.content {
        spoken["tool_calls"] = json!([tool_call(message, name, input)]);
    }
    spoken
}

fn tool_call(message: &Message, name: &str, input: &Value) -> Value {
    json!({
        "id": format!("call_{:08}", message.number), "type": "function",
        "function": {"name": name, "arguments": input.to_string()},
    })
}

fn finish_reason(content: &Content) -> &'static str {
    match content {
        Content::Text(_) | Content::Nothing => "stop",
        Content::CutShort(_) => "length",
        Content::Refusal => "content_filter",
        Content::ToolCall { .. } => "tool_calls",
    }
}

fn usage(message: &Message) -> Value {
    let usage = message.usage;
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}
