//! Gemini: `:generateContent` and `:streamGenerateContent?alt=sse`.

use serde_json::{Value, json};

use super::{Content, Message, Refused, Rejection, pieces};

/// The answer as one document.
pub(super) fn document(message: &Message) -> Value {
    match &message.content {
        Content::Refusal => blocked(message),
        Content::Text(text) => answer(message, &json!([{"text": text}]), Some("STOP")),
        Content::ToolCall { name, input } => {
            let part = json!({"functionCall": {"name": name, "args": input}});
            answer(message, &json!([part]), Some("STOP"))
        }
        Content::Nothing => answer(message, &json!([]), Some("STOP")),
    }
}

/// The answer as events; the last one has the reason why it ends.
pub(super) fn stream(message: &Message) -> Vec<String> {
    let chunks = match &message.content {
        Content::Text(text) => {
            let said = pieces(text).into_iter();
            let said = said.map(|piece| answer(message, &json!([{"text": piece}]), None));
            let end = answer(message, &json!([{"text": ""}]), Some("STOP"));
            said.chain([end]).collect()
        }
        _ => vec![document(message)],
    };
    chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\r\n\r\n"))
        .collect()
}

fn answer(message: &Message, parts: &Value, finish_reason: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(reason) = finish_reason {
        candidate["finishReason"] = json!(reason);
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage(message), "modelVersion": message.model,
        "responseId": format!("resp-{:08}", message.number),
    })
}

fn blocked(message: &Message) -> Value {
    json!({
        "promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage(message),
        "modelVersion": message.model,
    })
}

fn usage(message: &Message) -> Value {
    json!({
        "promptTokenCount": message.input_tokens, "candidatesTokenCount": message.output_tokens,
        "totalTokenCount": message.input_tokens.saturating_add(message.output_tokens),
    })
}

/// The refusal in Google's words.
pub(super) fn refuse(rejection: &Rejection, model: &str) -> Refused {
    let (code, status, message) = words(rejection, model);
    let mut error = json!({"code": code, "message": message, "status": status});
    let details = details(rejection);
    if !details.is_empty() {
        error["details"] = json!(details);
    }
    Refused {
        status: code,
        headers: Vec::new(),
        body: json!({"error": error}),
    }
}

fn words(rejection: &Rejection, model: &str) -> (u16, &'static str, String) {
    match rejection {
        Rejection::RateLimit { retry_after } => {
            let again = retry_after.map(|seconds| format!("\nPlease retry in {seconds}s."));
            let message = format!(
                "You exceeded your current quota, please check your plan and billing details. * Quota exceeded for \
                 metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 5{}",
                again.unwrap_or_default()
            );
            (429, "RESOURCE_EXHAUSTED", message)
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
            let (code, status, message) = plain_words(rejection);
            (code, status, message.to_owned())
        }
    }
}

fn plain_words(rejection: &Rejection) -> (u16, &'static str, &'static str) {
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
    let retry = |seconds: u64| of("RetryInfo", "retryDelay", json!(format!("{seconds}s")));
    match rejection {
        Rejection::RateLimit { retry_after } => [quota(
            "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
        )]
        .into_iter()
        .chain(retry_after.map(retry))
        .collect(),
        Rejection::UsageLimit { reset, seconds } => {
            let mut info = of("ErrorInfo", "reason", json!("QUOTA_EXHAUSTED"));
            info["domain"] = json!("cloudcode-pa.googleapis.com");
            info["metadata"] = json!({"quotaResetTimeStamp": reset});
            vec![info, retry(*seconds)]
        }
        Rejection::Quota => vec![quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")],
        Rejection::Auth => vec![of("ErrorInfo", "reason", json!("API_KEY_INVALID"))],
        _ => Vec::new(),
    }
}
