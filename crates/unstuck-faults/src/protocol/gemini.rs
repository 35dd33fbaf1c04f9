//! Gemini: `:generateContent` and `:streamGenerateContent?alt=sse`.

use serde_json::{Value, json};

use super::{
    LimitUnit, MessageContent, ModelMessage, OverLimit, Protocol, RefusalResponse, Rejection,
    text_chunks,
};

/// Returns the answer as one document.
pub(super) fn document(message: &ModelMessage) -> Value {
    match &message.content {
        MessageContent::Refusal => blocked_response(message),
        MessageContent::Text(text) | MessageContent::Truncated(text) => {
            let reason = finish_reason(&message.content);
            answer(message, &json!([{"text": text}]), Some(reason))
        }
        MessageContent::ToolCall { name, input } => {
            let part = json!({"functionCall": {"name": name, "args": input}});
            answer(message, &json!([part]), Some("STOP"))
        }
        MessageContent::Empty => answer(message, &json!([]), Some("STOP")),
    }
}

/// Returns the answer as events; the last one has the finish reason.
pub(super) fn stream(message: &ModelMessage) -> Vec<String> {
    let framed = |chunk: &Value| format!("data: {chunk}\r\n\r\n");
    match &message.content {
        MessageContent::Text(text) | MessageContent::Truncated(text) => {
            let said = |piece: &str| framed(&answer(message, &json!([{"text": piece}]), None));
            let mut frames = text_chunks::frames(&message.pieces.split(text), said);
            let reason = finish_reason(&message.content);
            frames.push(framed(&answer(
                message,
                &json!([{"text": ""}]),
                Some(reason),
            )));
            frames
        }
        _ => vec![framed(&document(message))],
    }
}

fn finish_reason(content: &MessageContent) -> &'static str {
    match content {
        MessageContent::Truncated(_) => "MAX_TOKENS",
        _ => "STOP",
    }
}

fn answer(message: &ModelMessage, parts: &Value, finish_reason: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(reason) = finish_reason {
        candidate["finishReason"] = json!(reason);
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage(message), "modelVersion": message.model,
        "responseId": format!("resp-{:08}", message.number),
    })
}

fn blocked_response(message: &ModelMessage) -> Value {
    json!({
        "promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage(message),
        "modelVersion": message.model,
    })
}

fn usage(message: &ModelMessage) -> Value {
    let usage = message.usage;
    let mut told = json!({
        "promptTokenCount": usage.input, "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.total(),
    });
    if usage.cache_read > 0 {
        told["cachedContentTokenCount"] = json!(usage.cache_read);
    }
    told
}

/// Returns the refusal in Google's format.
pub(super) fn refuse(rejection: &Rejection, model: &str) -> RefusalResponse {
    let (code, status, message) = error_content(rejection, model);
    let mut error = json!({"code": code, "message": message, "status": status});
    let details = details(rejection);
    if !details.is_empty() {
        error["details"] = json!(details);
    }
    let headers = match rejection {
        Rejection::StatedRateLimit(wait) => wait.headers(Protocol::Gemini),
        Rejection::Status {
            retry_after: Some(seconds),
            ..
        } => vec![("retry-after", seconds.to_string())],
        _ => Vec::new(),
    };
    RefusalResponse {
        status: code,
        headers,
        body: json!({"error": error}),
    }
}

fn error_content(rejection: &Rejection, model: &str) -> (u16, &'static str, String) {
    let limited = |limit: u64, again: Option<String>| {
        let again = again.map(|wait| format!("\nPlease retry in {wait}."));
        let message = format!(
            "You exceeded your current quota, please check your plan and billing details. * Quota exceeded for \
             metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: {limit}{}",
            again.unwrap_or_default()
        );
        (429, "RESOURCE_EXHAUSTED", message)
    };
    match rejection {
        Rejection::RateLimit { retry_after } => {
            limited(5, retry_after.map(|seconds| format!("{seconds}s")))
        }
        Rejection::StatedRateLimit(wait) => limited(5, wait.in_message()),
        Rejection::OverLimit(over) => {
            let wait = over.wait.map(|wait| format!("{}s", wait.as_secs_f64()));
            limited(u64::from(over.limit), wait)
        }
        Rejection::Status { code, message, .. } => {
            let (status, usual) = error_of_status(*code);
            (
                *code,
                status,
                message.clone().unwrap_or_else(|| usual.to_owned()),
            )
        }
        Rejection::UsageLimit { seconds, .. } => (
            429,
            "RESOURCE_EXHAUSTED",
            format!(
                "You have exhausted your capacity on this model. Your quota will reset after {seconds}s."
            ),
        ),
        Rejection::ModelNotFound => (
            404,
            "NOT_FOUND",
            format!(
                "models/{model} is not found for API version v1beta, or is not supported for generateContent."
            ),
        ),
        _ => {
            let (code, status, message) = default_error(rejection);
            (code, status, message.to_owned())
        }
    }
}

/// Returns the status name and usual message for a status code.
fn error_of_status(status: u16) -> (&'static str, &'static str) {
    match status {
        400 | 413 => ("INVALID_ARGUMENT", "Request contains an invalid argument."),
        401 => (
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials.",
        ),
        403 => ("PERMISSION_DENIED", "The caller does not have permission."),
        404 => ("NOT_FOUND", "Requested entity was not found."),
        408 | 504 => (
            "DEADLINE_EXCEEDED",
            "The service is unable to finish processing within the deadline.",
        ),
        429 => (
            "RESOURCE_EXHAUSTED",
            "Resource exhausted. Please try again later.",
        ),
        503 | 529 => ("UNAVAILABLE", "The service is currently unavailable."),
        _ => ("INTERNAL", "An internal error has occurred."),
    }
}

fn default_error(rejection: &Rejection) -> (u16, &'static str, &'static str) {
    match rejection {
        Rejection::Quota => (
            429,
            "RESOURCE_EXHAUSTED",
            "Quota exceeded for metric: generate_content_free_tier_requests, limit: 0",
        ),
        Rejection::Overloaded => (
            503,
            "UNAVAILABLE",
            "The model is overloaded. Please try again later.",
        ),
        Rejection::Auth => (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
        ),
        Rejection::AuthExpired => (
            400,
            "INVALID_ARGUMENT",
            "API key expired. Please renew the API key.",
        ),
        Rejection::ContentFilter => (
            400,
            "INVALID_ARGUMENT",
            "The request was blocked by the safety filters.",
        ),
        Rejection::Prefill => (
            400,
            "INVALID_ARGUMENT",
            "Please ensure that multiturn requests end with a user role.",
        ),
        Rejection::ContextLimit => (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        Rejection::NoSuchPath => (404, "NOT_FOUND", "Requested entity was not found."),
        Rejection::TooLarge => (
            400,
            "INVALID_ARGUMENT",
            "Request payload size exceeds the limit.",
        ),
        Rejection::NotJson => (400, "INVALID_ARGUMENT", "Invalid JSON payload received."),
        Rejection::NoStep => (500, "INTERNAL", "The script has no step for this request."),
        _ => (500, "INTERNAL", "An internal error has occurred."),
    }
}

fn details(rejection: &Rejection) -> Vec<Value> {
    let of = |kind: &str, key: &str, value: Value| json!({"@type": format!("type.googleapis.com/google.rpc.{kind}"), key: value});
    let quota = |id: &str| of("QuotaFailure", "violations", json!([{"quotaId": id}]));
    let retry = |delay: String| of("RetryInfo", "retryDelay", json!(delay));
    let limited = |delay: Option<String>| {
        let violated = quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier");
        [violated].into_iter().chain(delay.map(retry)).collect()
    };
    match rejection {
        Rejection::RateLimit { retry_after } => {
            limited(retry_after.map(|seconds| format!("{seconds}s")))
        }
        Rejection::StatedRateLimit(wait) => limited(wait.in_details()),
        Rejection::OverLimit(OverLimit { unit, wait, .. }) => {
            let id = match unit {
                LimitUnit::Requests => "GenerateRequestsPerMinutePerProjectPerModel",
                LimitUnit::Tokens => "GenerateContentInputTokensPerMinutePerProjectPerModel",
            };
            let delay = wait.map(|wait| format!("{}s", wait.as_secs_f64()));
            [quota(id)].into_iter().chain(delay.map(retry)).collect()
        }
        Rejection::UsageLimit { reset, seconds } => {
            let mut info = of("ErrorInfo", "reason", json!("QUOTA_EXHAUSTED"));
            info["domain"] = json!("cloudcode-pa.googleapis.com");
            info["metadata"] = json!({"quotaResetTimeStamp": reset});
            vec![info, retry(format!("{seconds}s"))]
        }
        Rejection::Quota => vec![quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")],
        Rejection::Auth | Rejection::AuthExpired => {
            vec![of("ErrorInfo", "reason", json!("API_KEY_INVALID"))]
        }
        _ => Vec::new(),
    }
}
