//! Every form in which a provider states a wait.

use std::time::Duration;

use unstuck_core::FailureKind;
use unstuck_faults::{FaultScript, FaultScriptReply, FaultServer, RetryAfterFormat};

use crate::exchange::{ANTHROPIC, DIALECTS, Dialect, GEMINI, Reached};

const WAIT: Duration = Duration::from_millis(7_500);

async fn limited(dialect: Dialect, form: RetryAfterFormat) -> Reached {
    let reply = FaultScriptReply::RateLimitAs { form, wait: WAIT };
    let server = FaultServer::start(FaultScript::default().with_step(reply)).unwrap();
    dialect.ask(&server).await
}

/// Returns the wait that unstuck reads from a refusal in this form, in each protocol.
async fn read(form: RetryAfterFormat) -> Vec<Option<Duration>> {
    let mut waits = Vec::new();
    for dialect in DIALECTS {
        let reached = limited(dialect, form).await;
        assert_eq!(reached.status, 429);
        let diagnosis = reached.diagnosis(dialect.provider);
        assert_eq!(diagnosis.kind, FailureKind::RateLimit, "{reached:?}");
        waits.push(diagnosis.retry_after);
    }
    waits
}

#[tokio::test]
async fn waits_in_milliseconds_are_parsed_exactly() {
    for form in [
        RetryAfterFormat::Fractional,
        RetryAfterFormat::Millis,
        RetryAfterFormat::Body,
        RetryAfterFormat::Message,
    ] {
        assert_eq!(read(form).await, [Some(WAIT); 4], "{form:?}");
    }
}

#[tokio::test]
async fn waits_in_seconds_or_as_timestamps_are_never_too_short() {
    for form in [RetryAfterFormat::Seconds, RetryAfterFormat::HttpDate] {
        for wait in read(form).await {
            // A timestamp is a little nearer when it is read than when it was written.
            let expected = Duration::from_millis(7_000)..=Duration::from_millis(8_500);
            assert!(
                wait.is_some_and(|wait| expected.contains(&wait)),
                "{form:?}: {wait:?}"
            );
        }
    }
}

#[tokio::test]
async fn rate_limit_headers_state_the_reset_in_each_form() {
    let forms = [
        (
            RetryAfterFormat::Duration,
            "x-ratelimit-reset-requests",
            "7.5s",
        ),
        (
            RetryAfterFormat::BareSeconds,
            "x-ratelimit-reset-tokens",
            "8",
        ),
    ];
    for (form, name, value) in forms {
        for dialect in DIALECTS {
            let reached = limited(dialect, form).await;
            assert_eq!(reached.header(name), Some(value), "{dialect:?} {form:?}");
            assert_eq!(reached.header("retry-after"), None);
        }
    }
    let anthropic = limited(ANTHROPIC, RetryAfterFormat::Rfc3339).await;
    let reset = anthropic.header("anthropic-ratelimit-requests-reset");
    assert!(reset.unwrap().parse::<unstuck_core::Timestamp>().is_ok());
    let epoch = limited(GEMINI, RetryAfterFormat::EpochSeconds).await;
    let seconds: i64 = epoch.header("x-ratelimit-reset").unwrap().parse().unwrap();
    let millis = limited(GEMINI, RetryAfterFormat::EpochMillis).await;
    let millis: i64 = millis.header("x-ratelimit-reset").unwrap().parse().unwrap();
    assert!((millis / 1000 - seconds).abs() <= 2, "{millis} {seconds}");
}

#[tokio::test]
async fn gemini_has_its_retry_info_in_the_body() {
    let reached = limited(GEMINI, RetryAfterFormat::Body).await;
    let details = &reached.json()["error"]["details"];
    let delays = details.as_array().unwrap().iter();
    let delays: Vec<_> = delays
        .filter_map(|detail| detail["retryDelay"].as_str())
        .collect();
    assert_eq!(delays, ["7.5s"]);
    let reached = limited(GEMINI, RetryAfterFormat::Message).await;
    assert!(!reached.body.contains("retryDelay"));
}

#[tokio::test]
async fn a_refusal_can_state_no_wait() {
    assert_eq!(read(RetryAfterFormat::None).await, [None; 4]);
}
