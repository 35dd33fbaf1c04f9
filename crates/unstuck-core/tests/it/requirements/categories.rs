//! Seed 000: kinds have categories, which determine levels.

use super::*;

/// S0-03: every failure has a category, which follows from the kind alone.
#[test]
fn diagnosis_has_the_category_of_its_kind() {
    for failure in crate::texts::failures() {
        let diagnosis = diagnose(&failure);
        assert_eq!(diagnosis.category(), diagnosis.kind.category());
        assert_ne!(diagnosis.kind, FailureKind::Unknown, "{failure:?}");
    }
}

/// S0-25: a rate limit is transient.
#[test]
fn rate_limit_is_transient() {
    let failure = answer(429, r#"{"error":{"code":"rate_limit_exceeded"}}"#);
    assert_eq!(kind(&failure), FailureKind::RateLimit);
    assert_eq!(category(&failure), Category::Transient);
    assert_eq!(diagnose(&failure).level, Some(RecoveryLevel::Same));
}

/// S0-26: a crash of the CLI is systematic.
#[test]
fn cli_crash_is_systematic() {
    let failure = Failure::agent("claude")
        .with_exit_code(139)
        .with_stderr("Segmentation fault (core dumped)");
    assert_eq!(kind(&failure), FailureKind::CliCrash);
    assert_eq!(category(&failure), Category::Systematic);
    assert_eq!(diagnose(&failure).level, Some(RecoveryLevel::Alternative));
}

/// S0-27: a missing login is fatal.
#[test]
fn missing_login_is_fatal() {
    let failure = answer(401, r#"{"error":{"code":"invalid_api_key"}}"#);
    assert_eq!(kind(&failure), FailureKind::AuthRequired);
    assert_eq!(category(&failure), Category::Fatal);
    assert_eq!(diagnose(&failure).level, Some(RecoveryLevel::Escalate));
}
