//! OpenAI's error format, the same in Chat Completions and Responses.

use serde_json::{Value, json};

use super::retry_after::go_duration;
use super::{
    Headers, LimitUnit, OverLimit, Protocol, RefusalResponse, Rejection, RetryAfterHint,
    whole_seconds,
};

/// Returns the refusal in OpenAI's format.
pub(super) fn refuse(rejection: &Rejection, model: &str, number: u64) -> RefusalResponse {
    let mut headers = vec![("x-request-id", format!("req_{number:08}"))];
    let (status, error) = match rejection {
        Rejection::UsageLimit { reset, seconds } => {
            // Rounded up, so that a retry in the stated second is not too early.
            let reset = reset.millis().saturating_add(999).div_euclid(1000);
            headers.extend(plan_limit_headers(reset));
            (429, usage_limit(reset, *seconds))
        }
        _ => {
            let (status, kind, code, message) = error_parts(rejection, model);
            (
                status,
                json!({"message": message, "type": kind, "param": null, "code": code}),
            )
        }
    };
    headers.extend(retry_after_headers(rejection));
    RefusalResponse {
        status,
        headers,
        body: json!({"error": error}),
    }
}

/// Returns the headers that state a wait.
fn retry_after_headers(rejection: &Rejection) -> Headers {
    match rejection {
        Rejection::RateLimit { retry_after } | Rejection::Status { retry_after, .. } => {
            let wait = retry_after.map(RetryAfterHint::seconds);
            wait.map_or_else(Vec::new, |wait| wait.headers(Protocol::Chat))
        }
        Rejection::StatedRateLimit(wait) => wait.headers(Protocol::Chat),
        Rejection::OverLimit(OverLimit {
            wait: Some(wait), ..
        }) => vec![
            ("retry-after", whole_seconds(*wait).to_string()),
            ("retry-after-ms", wait.as_millis().to_string()),
        ],
        _ => Vec::new(),
    }
}

/// Returns the error of a Codex plan that is used up.
fn usage_limit(reset: i64, seconds: u64) -> Value {
    json!({
        "type": "usage_limit_reached", "message": "The usage limit has been reached",
        "plan_type": "pro", "resets_at": reset, "resets_in_seconds": seconds,
    })
}

fn plan_limit_headers(reset: i64) -> [(&'static str, String); 3] {
    [
        ("x-codex-primary-used-percent", "100.0".into()),
        ("x-codex-primary-window-minutes", "300".into()),
        ("x-codex-primary-reset-at", reset.to_string()),
    ]
}

type OpenAiErrorParts = (u16, &'static str, Option<&'static str>, String);

fn error_parts(rejection: &Rejection, model: &str) -> OpenAiErrorParts {
    match rejection {
        Rejection::RateLimit { retry_after } => {
            rate_limit_error(model, retry_after.map(|seconds| format!("{seconds}s")))
        }
        Rejection::StatedRateLimit(wait) => rate_limit_error(model, wait.in_message()),
        Rejection::OverLimit(over) => over_limit_error(model, over),
        Rejection::Status { code, message, .. } => {
            let (kind, usual) = error_of_status(*code);
            (
                *code,
                kind,
                None,
                message.clone().unwrap_or_else(|| usual.to_owned()),
            )
        }
        Rejection::ModelNotFound => (
            404,
            "invalid_request_error",
            Some("model_not_found"),
            format!("The model `{model}` does not exist or you do not have access to it."),
        ),
        _ => {
            let (status, kind, code, message) = default_error(rejection);
            (status, kind, code, message.to_owned())
        }
    }
}

fn rate_limit_error(model: &str, again: Option<String>) -> OpenAiErrorParts {
    let again = again.map(|wait| format!(" Please try again in {wait}."));
    let message = format!(
        "Rate limit reached for {model} on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528.{}",
        again.unwrap_or_default()
    );
    (429, "tokens", Some("rate_limit_exceeded"), message)
}

/// Returns the error of an exceeded key limit.
fn over_limit_error(model: &str, over: &OverLimit) -> OpenAiErrorParts {
    let (kind, unit) = match over.unit {
        LimitUnit::Requests => ("requests", "requests per min (RPM)"),
        LimitUnit::Tokens => ("tokens", "tokens per min (TPM)"),
    };
    let (limit, used, requested) = (over.limit, over.used, over.requested);
    let message = match over.wait {
        Some(wait) => format!(
            "Rate limit reached for {model} on {unit}: Limit {limit}, Used {used}, Requested {requested}. \
             Please try again in {}.",
            go_duration(wait)
        ),
        None => format!(
            "Request too large for {model} on {unit}: Limit {limit}, Requested {requested}. The input or output \
             tokens must be reduced in order to run successfully."
        ),
    };
    (429, kind, Some("rate_limit_exceeded"), message)
}

/// Returns the error type and usual message for a status.
fn error_of_status(status: u16) -> (&'static str, &'static str) {
    match status {
        401 => ("invalid_request_error", "Incorrect API key provided."),
        403 => ("invalid_request_error", "You do not have access to this."),
        408 | 504 => ("timeout_error", "Request timed out."),
        429 => ("rate_limit_error", "Rate limit reached for requests."),
        400..=499 => ("invalid_request_error", "Your request was not accepted."),
        _ => (
            "server_error",
            "The server had an error processing your request.",
        ),
    }
}

fn default_error(rejection: &Rejection) -> (u16, &'static str, Option<&'static str>, &'static str) {
    match rejection {
        Rejection::Quota => (
            429,
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        Rejection::Overloaded => (
            503,
            "service_unavailable_error",
            Some("server_is_overloaded"),
            "The server is overloaded",
        ),
        Rejection::Auth => (
            401,
            "invalid_request_error",
            Some("invalid_api_key"),
            "Incorrect API key provided.",
        ),
        Rejection::AuthExpired => (
            401,
            "invalid_request_error",
            Some("token_expired"),
            "Your authentication token has been invalidated. Please try signing in again.",
        ),
        Rejection::ContentFilter => (
            400,
            "invalid_request_error",
            Some("content_policy_violation"),
            "Your request was rejected as a result of our safety system.",
        ),
        Rejection::Prefill => (
            400,
            "invalid_request_error",
            None,
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        ),
        Rejection::ContextLimit => (
            400,
            "invalid_request_error",
            Some("context_length_exceeded"),
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 \
             tokens. Please reduce the length of the messages.",
        ),
        Rejection::NoSuchPath => (404, "invalid_request_error", None, "Invalid URL"),
        Rejection::TooLarge => (
            413,
            "invalid_request_error",
            None,
            "The request body is too large.",
        ),
        Rejection::NotJson => (
            400,
            "invalid_request_error",
            None,
            "The body of your request is not valid JSON.",
        ),
        Rejection::NoStep => (
            500,
            "server_error",
            None,
            "The script has no step for this request.",
        ),
        _ => (
            500,
            "server_error",
            None,
            "The server had an error processing your request.",
        ),
    }
}
