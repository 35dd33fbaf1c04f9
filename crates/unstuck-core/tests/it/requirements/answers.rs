//! Seed 004: interpretation of API responses.

use super::*;

/// S4-19, S4-23: the kind implied by a status alone.
#[test]
fn status_alone_determines_the_kind() {
    for (status, expected, retryable) in [
        (429, FailureKind::RateLimit, true),
        (500, FailureKind::ServerError, true),
        (502, FailureKind::ServerError, true),
        (503, FailureKind::ServerError, true),
        (504, FailureKind::ServerError, true),
        (529, FailureKind::ServerOverloaded, true),
        (400, FailureKind::InvalidRequest, false),
        (402, FailureKind::QuotaExhausted, false),
        (401, FailureKind::AuthRequired, false),
        (403, FailureKind::AuthRequired, false),
        (408, FailureKind::Timeout, true),
    ] {
        let diagnosis = diagnose(&answer(status, ""));
        assert_eq!(diagnosis.kind, expected, "{status}");
        assert_eq!(diagnosis.is_retryable(), retryable, "{status}");
    }
}

/// S4-19: the names of the error types are mapped to kinds.
#[test]
fn every_error_type_of_the_api_is_mapped_to_a_kind() {
    for (name, expected) in [
        ("rate_limit", FailureKind::RateLimit),
        ("server_error", FailureKind::ServerError),
        ("timeout", FailureKind::Timeout),
        ("context_limit", FailureKind::ContextLimit),
        ("content_filter", FailureKind::ContentFilter),
        ("invalid_request", FailureKind::InvalidRequest),
        ("auth_error", FailureKind::AuthRequired),
        ("unknown", FailureKind::Unknown),
    ] {
        assert_eq!(name.parse(), Ok(expected));
    }
}

/// S4-23: 400 with context_length, or in any provider's wording, is a context limit and is not retried.
#[test]
fn context_limit_is_distinguished_from_other_bad_requests() {
    for body in [
        r#"{"error":{"code":"context_length_exceeded"}}"#,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215342 tokens > 200000 maximum"}}"#,
        r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
    ] {
        let diagnosis = diagnose(&answer(400, body));
        assert_eq!(diagnosis.kind, FailureKind::ContextLimit, "{body}");
        assert!(!diagnosis.is_retryable());
    }
    let other = answer(
        400,
        r#"{"error":{"message":"Unknown parameter: 'temprature'."}}"#,
    );
    assert_eq!(kind(&other), FailureKind::InvalidRequest);
}

/// S4-23: a client-side timeout may be retried, and anything that is not an API error is unknown.
#[test]
fn timeouts_are_retried_and_the_rest_is_unknown() {
    for failure in [
        Failure::api("openai").with_body("TimeoutError: Request timed out"),
        Failure::api("openai").with_timeout(),
    ] {
        let diagnosis = diagnose(&failure);
        assert_eq!(diagnosis.kind, FailureKind::Timeout);
        assert!(diagnosis.is_retryable());
    }
    let other = Failure::api("openai").with_body("something else went wrong here");
    assert_eq!(kind(&other), FailureKind::Unknown);
    assert_eq!(kind(&answer(418, "I'm a teapot")), FailureKind::Unknown);
}
