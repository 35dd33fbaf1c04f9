//! Writes answers and refusals in the format of Anthropic Messages.

use serde_json::{Value, json};

use super::{
    Headers, MessageContent, ModelMessage, OverLimit, Protocol, RefusalResponse, Rejection,
    RetryAfterHint, text_chunks, whole_seconds,
};

/// Returns the answer as one document.
pub(super) fn document(message: &ModelMessage) -> Value {
    let blocks: Vec<_> = block(message).into_iter().collect();
    envelope(
        message,
        &json!(blocks),
        &json!(stop_reason(&message.content)),
    )
}

/// Returns the answer as events.
pub(super) fn stream(message: &ModelMessage) -> Vec<String> {
    let mut frames = vec![frame(&json!({
        "type": "message_start", "message": envelope(message, &json!([]), &Value::Null),
    }))];
    frames.extend(block_frames(message));
    frames.push(frame(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(&message.content), "stop_sequence": null},
        "usage": usage(message),
    })));
    frames.push(frame(&json!({"type": "message_stop"})));
    frames
}

fn frame(event: &Value) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}

fn envelope(message: &ModelMessage, content: &Value, stop_reason: &Value) -> Value {
    json!({
        "id": format!("msg_{:08}", message.number), "type": "message", "role": "assistant",
        "model": message.model, "content": content, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": usage(message),
    })
}

fn usage(message: &ModelMessage) -> Value {
    let usage = message.usage;
    json!({
        // Cached input tokens are not part of the input here.
        "input_tokens": usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write),
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_write, "cache_read_input_tokens": usage.cache_read,
    })
}

fn stop_reason(content: &MessageContent) -> &'static str {
    match content {
        MessageContent::Text(_) | MessageContent::Empty => "end_turn",
        MessageContent::Truncated(_) => "max_tokens",
        MessageContent::Refusal => "refusal",
        MessageContent::ToolCall { .. } => "tool_use",
    }
}

fn block(message: &ModelMessage) -> Option<Value> {
    match &message.content {
        MessageContent::Text(text) | MessageContent::Truncated(text) => {
            Some(json!({"type": "text", "text": text}))
        }
        MessageContent::ToolCall { name, input } => Some(json!({
            "type": "tool_use", "id": tool_id(message), "name": name, "input": input,
        })),
        MessageContent::Refusal | MessageContent::Empty => None,
    }
}

fn tool_id(message: &ModelMessage) -> String {
    format!("toolu_{:08}", message.number)
}

fn block_frames(message: &ModelMessage) -> Vec<String> {
    let delta =
        |delta: Value| frame(&json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    let (start, deltas) = match &message.content {
        MessageContent::Text(text) | MessageContent::Truncated(text) => (
            json!({"type": "text", "text": ""}),
            text_chunks::frames(&message.pieces.split(text), |piece| {
                delta(json!({"type": "text_delta", "text": piece}))
            }),
        ),
        MessageContent::ToolCall { name, input } => (
            json!({"type": "tool_use", "id": tool_id(message), "name": name, "input": {}}),
            vec![delta(
                json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            )],
        ),
        MessageContent::Refusal | MessageContent::Empty => return Vec::new(),
    };
    let start = json!({"type": "content_block_start", "index": 0, "content_block": start});
    let opening = [frame(&start), frame(&json!({"type": "ping"}))];
    let stop = frame(&json!({"type": "content_block_stop", "index": 0}));
    opening.into_iter().chain(deltas).chain([stop]).collect()
}

/// Returns the refusal in Anthropic's format.
pub(super) fn refuse(rejection: &Rejection, model: &str, number: u64) -> RefusalResponse {
    let (status, kind, message) = error_content(rejection, model);
    let request_id = format!("req_{number:08}");
    let mut headers = vec![("request-id", request_id.clone())];
    headers.extend(retry_after_headers(rejection));
    RefusalResponse {
        status,
        headers,
        body: json!({
            "type": "error", "error": {"type": kind, "message": message}, "request_id": request_id,
        }),
    }
}

/// Returns the headers that state a wait.
fn retry_after_headers(rejection: &Rejection) -> Headers {
    match rejection {
        Rejection::RateLimit { retry_after } | Rejection::Status { retry_after, .. } => {
            let wait = retry_after.map(RetryAfterHint::seconds);
            wait.map_or_else(Vec::new, |wait| wait.headers(Protocol::Anthropic))
        }
        Rejection::StatedRateLimit(wait) => wait.headers(Protocol::Anthropic),
        Rejection::OverLimit(OverLimit {
            wait: Some(wait), ..
        }) => vec![("retry-after", whole_seconds(*wait).to_string())],
        Rejection::UsageLimit { reset, seconds } => {
            subscription_headers(reset.millis(), *seconds).into()
        }
        _ => Vec::new(),
    }
}

/// Returns the headers of a subscription whose five-hour limit is used up.
fn subscription_headers(reset_millis: i64, seconds: u64) -> [(&'static str, String); 7] {
    // Rounded up, so that a retry in the stated second is not too early.
    let reset = reset_millis
        .saturating_add(999)
        .div_euclid(1000)
        .to_string();
    [
        ("retry-after", seconds.to_string()),
        ("anthropic-ratelimit-unified-status", "rejected".into()),
        ("anthropic-ratelimit-unified-reset", reset.clone()),
        (
            "anthropic-ratelimit-unified-representative-claim",
            "five_hour".into(),
        ),
        ("anthropic-ratelimit-unified-5h-status", "rejected".into()),
        ("anthropic-ratelimit-unified-5h-reset", reset),
        ("anthropic-ratelimit-unified-5h-utilization", "1.0".into()),
    ]
}

const RATE_LIMITED: &str =
    "This request would exceed your account's rate limit. Please try again later.";

fn error_content(rejection: &Rejection, model: &str) -> (u16, &'static str, String) {
    match rejection {
        Rejection::StatedRateLimit(wait) => {
            let again = wait.in_message();
            let again = again.map(|wait| format!(" Please try again in {wait}."));
            let message = format!("{RATE_LIMITED}{}", again.unwrap_or_default());
            (429, "rate_limit_error", message)
        }
        Rejection::ModelNotFound => (404, "not_found_error", format!("model: {model}")),
        Rejection::Status { code, message, .. } => {
            let (kind, usual) = error_of_status(*code);
            (
                *code,
                kind,
                message.clone().unwrap_or_else(|| usual.to_owned()),
            )
        }
        _ => {
            let (status, kind, message) = default_error(rejection);
            (status, kind, message.to_owned())
        }
    }
}

/// Returns the error type and usual message for a status.
fn error_of_status(status: u16) -> (&'static str, &'static str) {
    match status {
        400 | 405 | 422 => ("invalid_request_error", "Invalid request"),
        401 => ("authentication_error", "invalid x-api-key"),
        402 => ("billing_error", "There is an issue with your billing"),
        403 => ("permission_error", "Your API key does not have permission"),
        404 => ("not_found_error", "Not found"),
        408 | 504 => ("timeout_error", "Request timed out"),
        409 => ("conflict_error", "Conflict"),
        413 => ("request_too_large", "Request exceeds the maximum size"),
        429 => ("rate_limit_error", RATE_LIMITED),
        529 => ("overloaded_error", "Overloaded"),
        _ => ("api_error", "Internal server error"),
    }
}

fn default_error(rejection: &Rejection) -> (u16, &'static str, &'static str) {
    let invalid = "invalid_request_error";
    match rejection {
        Rejection::Quota => (
            400,
            invalid,
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to \
             upgrade or purchase credits.",
        ),
        Rejection::Overloaded => (529, "overloaded_error", "Overloaded"),
        Rejection::Auth => (401, "authentication_error", "invalid x-api-key"),
        Rejection::AuthExpired => (
            401,
            "authentication_error",
            "OAuth token has expired. Please obtain a new token or refresh your existing token.",
        ),
        Rejection::ContextLimit => (
            400,
            invalid,
            "prompt is too long: 215342 tokens > 200000 maximum",
        ),
        Rejection::ContentFilter => (400, invalid, "Output blocked by content filtering policy"),
        Rejection::Prefill => (
            400,
            invalid,
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        ),
        Rejection::NoSuchPath => (404, "not_found_error", "Not found"),
        Rejection::TooLarge => (413, "request_too_large", "Request exceeds the maximum size"),
        Rejection::NotJson => (400, invalid, "The request body is not valid JSON"),
        Rejection::NoStep => (500, "api_error", "The script has no step for this request"),
        Rejection::RateLimit { .. } | Rejection::UsageLimit { .. } | Rejection::OverLimit(_) => {
            (429, "rate_limit_error", RATE_LIMITED)
        }
        _ => (500, "api_error", "Internal server error"),
    }
}
