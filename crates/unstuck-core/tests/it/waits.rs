//! Stated waits in every form known from providers and agents.

mod clocks;

use unstuck_core::{Classifier, ClockReading, Failure, FailureKind, Timestamp};

fn limited() -> Failure {
    Failure::api("openai").with_status(429)
}

fn said(text: &str) -> Failure {
    Failure::agent("claude")
        .with_exit_code(1)
        .with_stdout(text)
        .with_stderr("")
}

/// Returns the stated wait in seconds.
fn wait_at(failure: &Failure, now: &ClockReading) -> Option<f64> {
    Classifier::built_in()
        .diagnose(failure, now)
        .retry_after
        .map(|wait| wait.as_secs_f64())
}

fn wait(failure: &Failure) -> Option<f64> {
    wait_at(failure, &super::now())
}

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn epoch(text: &str) -> i64 {
    moment(text).millis() / 1000
}

/// Returns when the failure permits a retry.
fn until(failure: &Failure, now: &ClockReading) -> String {
    Classifier::built_in()
        .diagnose(failure, now)
        .retry_after
        .map(|wait| now.at.after(wait).to_string())
        .unwrap_or_default()
}

#[test]
fn header_states_seconds_milliseconds_or_a_date() {
    for (name, value, seconds) in [
        ("retry-after", "20", 20.0),
        ("Retry-After", "1.5", 1.5),
        ("retry-after", "Sun, 15 Nov 2026 20:31:30 GMT", 90.0),
        ("retry-after-ms", "1500", 1.5),
        ("retry-after-ms", "250.5", 0.2505),
        ("x-ms-retry-after-ms", "900", 0.9),
        ("x-amz-retry-after", "4000", 4.0),
    ] {
        let failure = limited().with_header(name, value);
        assert_eq!(wait(&failure), Some(seconds), "{name}: {value}");
    }
}

#[test]
fn most_precise_source_wins() {
    let reset = limited()
        .with_header("x-ratelimit-remaining-tokens", "0")
        .with_header("x-ratelimit-reset-tokens", "6m0s");
    assert_eq!(wait(&reset), Some(360.0));
    let body = reset.with_body("Please try again in 40s.");
    assert_eq!(wait(&body), Some(40.0));
    let seconds = body.with_header("retry-after", "30");
    assert_eq!(wait(&seconds), Some(30.0));
    let millis = seconds.with_header("retry-after-ms", "1200");
    assert_eq!(wait(&millis), Some(1.2));
}

#[test]
fn invalid_header_falls_back_to_the_body() {
    for value in [
        "0",
        "-1",
        "-0.5",
        "NaN",
        "inf",
        "1e400",
        "soon",
        "",
        "99999999999",
        "1e-12",
        "Sun, 06 Nov 1994 08:49:37 GMT",
    ] {
        for name in ["retry-after", "retry-after-ms"] {
            let failure = limited().with_header(name, value);
            assert_eq!(wait(&failure), None, "{name}: {value}");
            let told = failure.with_body("Please try again in 20s.");
            assert_eq!(wait(&told), Some(20.0), "{name}: {value}");
        }
    }
}

#[test]
fn exhausted_bucket_determines_the_reset() {
    let anthropic = |requests: &str, tokens: &str| {
        Failure::api("anthropic")
            .with_status(429)
            .with_header("anthropic-ratelimit-requests-remaining", requests)
            .with_header("anthropic-ratelimit-requests-reset", "2026-11-15T20:30:25Z")
            .with_header("anthropic-ratelimit-input-tokens-remaining", tokens)
            .with_header(
                "anthropic-ratelimit-input-tokens-reset",
                "2026-11-15T20:31:10Z",
            )
    };
    assert_eq!(wait(&anthropic("0", "1000")), Some(25.0));
    assert_eq!(wait(&anthropic("50", "0")), Some(70.0));
    assert_eq!(wait(&anthropic("0", "0")), Some(70.0));
    let codex = limited()
        .with_header("x-codex-primary-used-percent", "100")
        .with_header(
            "x-codex-primary-reset-at",
            &epoch("2026-11-15T21:30:00Z").to_string(),
        )
        .with_header("x-codex-secondary-used-percent", "41")
        .with_header(
            "x-codex-secondary-reset-at",
            &epoch("2026-11-20T00:00:00Z").to_string(),
        );
    assert_eq!(wait(&codex), Some(3600.0));
}

#[test]
fn reset_headers_are_durations_seconds_epochs_or_dates() {
    let in_two_minutes = epoch("2026-11-15T20:32:00Z");
    for (name, value, seconds) in [
        ("x-ratelimit-reset-requests", "6m0s".to_owned(), 360.0),
        ("x-ratelimit-reset-requests", "12ms".to_owned(), 0.012),
        ("x-ratelimit-reset-tokens", "7.66s".to_owned(), 7.66),
        ("x-ratelimit-reset-tokens", "2m59.56s".to_owned(), 179.56),
        ("x-ratelimit-reset-tokens", "42".to_owned(), 42.0),
        ("X-RateLimit-Reset", format!("{in_two_minutes}000"), 120.0),
        ("x-ratelimit-reset", in_two_minutes.to_string(), 120.0),
        (
            "anthropic-ratelimit-unified-reset",
            in_two_minutes.to_string(),
            120.0,
        ),
        (
            "anthropic-ratelimit-tokens-reset",
            "2026-11-15T20:32:00Z".to_owned(),
            120.0,
        ),
        (
            "x-codex-primary-reset-at",
            in_two_minutes.to_string(),
            120.0,
        ),
    ] {
        let read = wait(&limited().with_header(name, &value)).unwrap_or_default();
        assert!((read - seconds).abs() < 1e-6, "{name}: {value}, got {read}");
    }
    for junk in ["-1", "0", "NaN", "never", "1"] {
        let failure = limited().with_header("x-ratelimit-reset-tokens", junk);
        let expected = (junk == "1").then_some(1.0);
        assert_eq!(wait(&failure), expected, "{junk}");
    }
}

#[test]
fn subscription_window_states_its_reset_as_an_epoch() {
    let failure = Failure::api("anthropic")
        .with_status(429)
        .with_header("anthropic-ratelimit-unified-status", "rejected")
        .with_header(
            "anthropic-ratelimit-unified-representative-claim",
            "five_hour",
        )
        .with_header(
            "anthropic-ratelimit-unified-reset",
            &epoch("2026-11-16T00:00:00Z").to_string(),
        )
        .with_header(
            "anthropic-ratelimit-unified-7d-reset",
            &epoch("2026-11-20T00:00:00Z").to_string(),
        );
    assert_eq!(super::kind(&failure), FailureKind::RateLimitTimed);
    assert_eq!(wait(&failure), Some(12_600.0));
}

#[test]
fn body_states_the_wait_as_text() {
    for (text, seconds) in [
        (
            "Please try again in 11.054s. Visit https://platform.openai.com",
            11.054,
        ),
        ("Please try again in 28ms.", 0.028),
        ("Please try again in 9m38.016s.", 578.016),
        ("Please try again in 1h2m.", 3720.0),
        ("Please retry in 58.8s.", 58.8),
        ("Please retry after 37 seconds.", 37.0),
        ("Please wait 60 seconds before retrying.", 60.0),
        ("Rate limit exceeded (reset after 2m 13s)", 133.0),
        ("Try again in 60 seconds", 60.0),
        ("Suggested retry after 60s.", 60.0),
        (
            "Limite erreicht, try again in 2 hours and 5 minutes",
            7500.0,
        ),
        (
            "{\"error\":{\"code\":\"rate_limit_exceeded\",\"retry_after\":12}}",
            12.0,
        ),
        (
            "{\"detail\":\"Too many requests\",\"retry_after_ms\": 1500}",
            1.5,
        ),
    ] {
        assert_eq!(wait(&limited().with_body(text)), Some(seconds), "{text}");
    }
}

#[test]
fn google_states_the_wait_in_a_detail() {
    for (delay, seconds) in [
        ("37s", 37.0),
        ("34.074824224s", 34.074_824_224),
        ("900ms", 0.9),
    ] {
        let body = format!(
            r#"{{"error":{{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{delay}"}}]}}}}"#
        );
        let failure = Failure::api("gemini").with_status(429).with_body(body);
        assert_eq!(wait(&failure), Some(seconds), "{delay}");
    }
    let printed = Failure::api("gemini").with_status(429).with_body(
        "429 You exceeded your current quota.\nviolations {\n  quota_id: \"GenerateRequestsPerMinutePerProject\"\n}\nretry_delay {\n  seconds: 44\n}\n",
    );
    assert_eq!(wait(&printed), Some(44.0));
}

#[test]
fn daily_google_quota_ends_at_midnight_in_california_whatever_the_delay() {
    let body = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"58s"}]}}"#;
    let failure = Failure::api("gemini").with_status(429).with_body(body);
    assert_eq!(super::kind(&failure), FailureKind::RateLimitTimed);
    assert_eq!(until(&failure, &super::now()), "2026-11-16T08:00:00Z");
    let summer = ClockReading::utc(moment("2026-07-01T06:59:00Z"));
    assert_eq!(until(&failure, &summer), "2026-07-01T07:00:00Z");
    let night_of_change = ClockReading::utc(moment("2026-11-01T08:00:00Z"));
    assert_eq!(until(&failure, &night_of_change), "2026-11-02T08:00:00Z");
}

#[test]
fn body_states_an_epoch_or_a_date() {
    let midnight = epoch("2026-11-16T00:00:00Z");
    let plan = format!(
        r#"{{"error":{{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":{midnight}}}}}"#
    );
    assert_eq!(wait(&limited().with_body(plan)), Some(12_600.0));
    let event = format!(
        r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{midnight},"rateLimitType":"five_hour"}}}}"#
    );
    assert_eq!(wait(&said(&event)), Some(12_600.0));
    let old = format!("Claude AI usage limit reached|{midnight}");
    assert_eq!(wait(&said(&old)), Some(12_600.0));
    let spent = Failure::api("anthropic").with_status(400).with_body(
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#,
    );
    assert_eq!(super::kind(&spent), FailureKind::QuotaExhausted);
    assert_eq!(until(&spent, &super::now()), "2026-12-01T00:00:00Z");
}

#[test]
fn past_time_is_not_a_wait() {
    assert_eq!(
        wait(&said("Claude AI usage limit reached|1755806400")),
        None
    );
    let spent = limited().with_body("You will regain access on 2026-09-01 at 00:00 UTC.");
    assert_eq!(wait(&spent), None);
}

#[test]
fn absurd_waits_are_ignored() {
    for text in [
        "Please try again in 0s.",
        "Please try again in 0.000s.",
        "Please try again in 99999999999999999999 hours.",
        "Please try again in 5000 days.",
        "resets_at: 9999999999999",
        "Please try again in -5s.",
        "Please try again in NaN seconds.",
        "Please try again later.",
    ] {
        assert_eq!(wait(&limited().with_body(text)), None, "{text}");
    }
}

#[test]
fn long_stated_wait_makes_a_rate_limit_a_timed_one() {
    let kind = |seconds: &str| super::kind(&limited().with_header("retry-after", seconds));
    assert_eq!(kind("300"), FailureKind::RateLimit);
    assert_eq!(kind("301"), FailureKind::RateLimitTimed);
    assert_eq!(kind("86400"), FailureKind::RateLimitTimed);
}

#[test]
fn permanent_failure_states_no_wait() {
    let failure = Failure::api("anthropic")
        .with_status(401)
        .with_header("retry-after", "30")
        .with_body("invalid x-api-key, please try again in 30s");
    assert_eq!(super::kind(&failure), FailureKind::AuthRequired);
    assert_eq!(wait(&failure), None);
}

/// A user's rule captures the wait in its own wording.
#[test]
fn rule_captures_the_wait_by_a_named_group() {
    let config = r#"
        [[kinds.server_overloaded.rule]]
        id = "ours"
        any = ['/cooling down for (?P<seconds>\d+) ticks/', '/back at (?P<clock>\d+:\d+)/']
    "#;
    let overlay: unstuck_core::knowledge::KnowledgeOverlay = toml::from_str(config).unwrap();
    let knowledge = unstuck_core::knowledge::DiagnosisKnowledge::built_in().with_overlay(overlay);
    let classifier = unstuck_core::Classifier::new(knowledge).unwrap();
    let now = unstuck_core::ClockReading::utc("2026-11-15T20:00:00Z".parse().unwrap());
    let wait = |text: &str| {
        let failure = unstuck_core::Failure::tool("deploy")
            .with_exit_code(1)
            .with_stderr(text);
        classifier
            .diagnose(&failure, &now)
            .retry_after
            .map(|wait| wait.as_secs())
    };
    assert_eq!(wait("cooling down for 90 ticks"), Some(90));
    assert_eq!(wait("the farm is back at 21:30"), Some(5400));
}
