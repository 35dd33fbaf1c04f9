//! How OpenAI refuses, in Chat Completions and Responses alike.

use serde_json::{Value, json};

use super::{Refused, Rejection};

/// The refusal in OpenAI's words.
pub(super) fn refuse(rejection: &Rejection, model: &str, number: u64) -> Refused {
    let mut headers = vec![("x-request-id", format!("req_{number:08}"))];
    let (status, error) = match rejection {
        Rejection::UsageLimit { reset, seconds } => {
            // Rounded up: whoever comes back in the stated second must not come too early.
            let reset = reset.millis().saturating_add(999).div_euclid(1000);
            headers.extend(window(reset));
            (429, usage_limit(reset, *seconds))
        }
        _ => {
            let (status, kind, code, message) = words(rejection, model);
            (
                status,
                json!({"message": message, "type": kind, "param": null, "code": code}),
            )
        }
    };
    if let Rejection::RateLimit {
        retry_after: Some(seconds),
    } = rejection
    {
        headers.push(("retry-after", seconds.to_string()));
    }
    Refused {
        status,
        headers,
        body: json!({"error": error}),
    }
}

/// How the Codex plan says that it is used up.
fn usage_limit(reset: i64, seconds: u64) -> Value {
    json!({
        "type": "usage_limit_reached", "message": "The usage limit has been reached",
        "plan_type": "pro", "resets_at": reset, "resets_in_seconds": seconds,
    })
}

fn window(reset: i64) -> [(&'static str, String); 3] {
    [
        ("x-codex-primary-used-percent", "100.0".into()),
        ("x-codex-primary-window-minutes", "300".into()),
        ("x-codex-primary-reset-at", reset.to_string()),
    ]
}

type Words = (u16, &'static str, Option<&'static str>, String);

fn words(rejection: &Rejection, model: &str) -> Words {
    match rejection {
        Rejection::RateLimit { retry_after } => {
            let again = retry_after.map(|seconds| format!(" Please try again in {seconds}s."));
            let message = format!(
                "Rate limit reached for {model} on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528.{}",
                again.unwrap_or_default()
            );
            (429, "tokens", Some("rate_limit_exceeded"), message)
        }
        Rejection::ModelNotFound => (
            404,
            "invalid_request_error",
            Some("model_not_found"),
            format!("The model `{model}` does not exist or you do not have access to it."),
        ),
        _ => {
            let (status, kind, code, message) = plain_words(rejection);
            (status, kind, code, message.to_owned())
        }
    }
}

fn plain_words(rejection: &Rejection) -> (u16, &'static str, Option<&'static str>, &'static str) {
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
