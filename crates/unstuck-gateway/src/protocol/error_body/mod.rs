//! Error responses of the gateway, in the shape that the client's SDK expects.

mod error_names;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use unstuck_core::Timestamp;

use super::endpoint::{LlmApiEndpoint, Protocol};
use super::response::ResponseReader;
use error_names::ErrorNames;

/// The details of an error for a client.
#[derive(Debug, Clone, Copy)]
pub struct ErrorDetails<'a> {
    /// The status of the response, or the status it would have in a stream.
    pub status: u16,
    /// The name of the failure kind, e.g. `rate_limit_timed`.
    pub code: &'a str,
    /// The message for a human: the cause and the next step.
    pub message: &'a str,
    /// The delay before a retry makes sense.
    pub retry_after: Option<Duration>,
    /// The time when the limit resets.
    pub reset_at: Option<Timestamp>,
}

/// Returns the content type and body of an error response.
pub fn error_body(protocol: Protocol, trouble: &ErrorDetails<'_>) -> (&'static str, Bytes) {
    let body = match protocol {
        Protocol::Anthropic => json!({"type": "error", "error": anthropic_error(trouble)}),
        Protocol::OpenAi => json!({"error": openai_error(trouble)}),
        Protocol::Gemini => json!({"error": google_error(trouble)}),
    };
    ("application/json", body.to_string().into())
}

/// Returns the final error event of a stream that cannot be completed, which is then closed. The data read so far
/// determines its form. Empty if the call is not inspected.
pub fn error_event(reading: &ResponseReader, trouble: &ErrorDetails<'_>) -> Bytes {
    let event = match reading.endpoint() {
        LlmApiEndpoint::Messages => {
            let data = json!({"type": "error", "error": anthropic_error(trouble)});
            format!("event: error\ndata: {data}\n\n")
        }
        LlmApiEndpoint::Chat => format!("data: {}\n\n", json!({"error": openai_error(trouble)})),
        LlmApiEndpoint::Responses => {
            let data = response_failed(reading, trouble);
            format!("event: response.failed\ndata: {data}\n\n")
        }
        LlmApiEndpoint::Generate if reading.is_in_array() => {
            format!(",\r\n{}]\r\n", json!({"error": google_error(trouble)}))
        }
        LlmApiEndpoint::Generate => {
            format!("data: {}\r\n\r\n", json!({"error": google_error(trouble)}))
        }
        LlmApiEndpoint::Other => String::new(),
    };
    event.into()
}

/// Returns keep-alive bytes for a client waiting for a stream to begin or continue; `None` where its parser accepts
/// none.
pub const fn keep_alive(endpoint: LlmApiEndpoint) -> Option<&'static [u8]> {
    match endpoint {
        LlmApiEndpoint::Messages => Some(b"event: ping\ndata: {\"type\": \"ping\"}\n\n"),
        LlmApiEndpoint::Chat | LlmApiEndpoint::Responses => Some(b": keep-alive\n\n"),
        // The parser of Gemini CLI breaks at comments.
        LlmApiEndpoint::Generate | LlmApiEndpoint::Other => None,
    }
}

/// Returns the status at which the common agents on this endpoint stop at once, while they retry after others.
pub const fn stop_status(endpoint: LlmApiEndpoint) -> u16 {
    match endpoint {
        // Claude Code stops at 402 and 403, goose at 401 and 403, opencode at most of 4xx.
        LlmApiEndpoint::Messages => 403,
        // aider and goose stop at 401, opencode at most of 4xx.
        LlmApiEndpoint::Chat => 401,
        // Codex stops at 400 and 404 only.
        LlmApiEndpoint::Responses => 400,
        // Gemini CLI stops at 400, 401 and 403; the latter two may start its login.
        LlmApiEndpoint::Generate => 400,
        LlmApiEndpoint::Other => 403,
    }
}

/// Returns the details beyond the API's own fields.
fn unstuck_details(trouble: &ErrorDetails<'_>) -> Value {
    let mut ours = json!({"kind": trouble.code});
    if let Some(wait) = trouble.retry_after {
        ours["retryAfter"] = json!(wait.as_secs_f64());
    }
    if let Some(reset) = trouble.reset_at {
        ours["resetAt"] = json!(reset);
    }
    ours
}

fn anthropic_error(trouble: &ErrorDetails<'_>) -> Value {
    let words = ErrorNames::for_failure(trouble.code, trouble.status);
    json!({"type": words.anthropic, "message": trouble.message, "unstuck": unstuck_details(trouble)})
}

fn openai_error(trouble: &ErrorDetails<'_>) -> Value {
    let words = ErrorNames::for_failure(trouble.code, trouble.status);
    let mut error = json!({
        "message": trouble.message, "type": words.openai, "param": null, "code": words.code,
        "unstuck": unstuck_details(trouble),
    });
    // Codex shows this time to its user. Rounded up: a client that returns then must not be too early.
    if let Some(reset) = trouble.reset_at {
        let seconds = reset.millis().saturating_add(999).div_euclid(1000);
        error["resets_at"] = json!(seconds);
    }
    error
}

fn google_error(trouble: &ErrorDetails<'_>) -> Value {
    let words = ErrorNames::for_failure(trouble.code, trouble.status);
    let mut info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": trouble.code.to_ascii_uppercase(), "domain": "unstuck",
    });
    if let Some(reset) = trouble.reset_at {
        info["metadata"] = json!({"resetAt": reset});
    }
    let mut details = vec![info];
    if let Some(wait) = trouble.retry_after {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{}s", wait.as_secs_f64()),
        }));
    }
    json!({
        "code": trouble.status, "message": trouble.message, "status": words.google, "details": details,
    })
}

/// Returns the event that ends a response in progress, with the next sequence number.
fn response_failed(reading: &ResponseReader, trouble: &ErrorDetails<'_>) -> Value {
    let words = ErrorNames::for_failure(trouble.code, trouble.status);
    // Codex parses the wait from the sentence.
    let again = trouble.retry_after.filter(|_| trouble.code == "rate_limit");
    let again = again.map(|wait| format!(" Please try again in {}s.", wait.as_secs_f64()));
    let message = format!("{}{}", trouble.message, again.unwrap_or_default());
    let id = reading.id.as_deref().unwrap_or("resp_unstuck");
    json!({
        "type": "response.failed",
        "sequence_number": reading.sequence.map_or(0, |last| last.saturating_add(1)),
        "response": {
            "id": id, "object": "response", "created_at": reading.created, "status": "failed",
            "model": reading.summary().model, "output": [], "usage": null, "incomplete_details": null,
            "error": {"code": words.code, "message": message},
        },
    })
}
