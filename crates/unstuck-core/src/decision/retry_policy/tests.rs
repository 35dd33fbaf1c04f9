//! Tests of parsing, checking and serializing policies.

use super::*;

fn problems(json: &str) -> Vec<String> {
    let error = RetryPolicy::from_json(json).unwrap_err();
    error.problems.iter().map(ToString::to_string).collect()
}

/// S4-18: the policy's nine agreed keys, as the REST API serves them.
#[test]
fn a_policy_is_serialized_under_the_agreed_names() {
    let json = serde_json::to_value(template("standard").unwrap()).unwrap();
    let agreed = serde_json::json!({
        "id": "standard", "name": "Standard", "maxRetries": 3, "backoffBase": 1.0, "backoffMultiplier": 2.0,
        "maxBackoff": 30.0, "retryableErrors": [], "autoEscalate": false, "escalateAfterRetries": 3
    });
    for (key, value) in agreed.as_object().unwrap() {
        assert_eq!(&json[key], value, "{key}");
    }
    assert_eq!(json["maxElapsed"], "6h");
    assert_eq!(json["maxCost"], serde_json::Value::Null);
    assert_eq!(json["jitter"], "full");
}

/// S4-02, S4-03: the template `standard` retries three times after 1, 2 and 4 s, and never waits more than 30 s.
#[test]
fn the_templates_have_the_agreed_numbers() {
    let of = |id: &str| {
        let one = template(id).unwrap();
        (
            one.max_retries,
            one.backoff_base,
            one.backoff_multiplier,
            one.curve,
        )
    };
    assert_eq!(of("resilient"), (3, 0.5, 2.0, BackoffCurve::Exponential));
    assert_eq!(of("standard"), (3, 1.0, 2.0, BackoffCurve::Exponential));
    assert_eq!(of("patient"), (3, 5.0, 2.0, BackoffCurve::Exponential));
    assert_eq!(of("pipeline"), (3, 1.0, 1.0, BackoffCurve::Linear));
    assert!(template("critical").unwrap().auto_switch_model);
    assert!(!template("thrifty").unwrap().auto_switch_model);
    assert!(!template("off").unwrap().enabled);
    assert!(template("nothing").is_none());
}

#[test]
fn a_serialized_policy_can_be_parsed() {
    for one in templates() {
        let json = serde_json::to_string(one).unwrap();
        assert_eq!(&RetryPolicy::from_json(&json).unwrap(), one);
    }
    let policy = RetryPolicy::from_json(
        r#"{"kinds": {"timeout": {"maxRetries": 5, "curve": "linear", "timeoutMultiplier": 2}},
            "tools": {"cargo test": {"maxRetries": 0}}, "maxCost": 2.5, "maxWait": null}"#,
    )
    .unwrap();
    let json = serde_json::to_string(&policy).unwrap();
    assert_eq!(RetryPolicy::from_json(&json).unwrap(), policy);
}

/// A number of retries is a promise to stop after them, so it replaces the time bound of the template.
#[test]
fn setting_only_a_number_of_retries_is_a_count_limit() {
    let give_up_after = |json: &str| RetryPolicy::from_json(json).unwrap().give_up_after;
    let half_an_hour = Some(Duration::from_secs(1800));
    assert_eq!(give_up_after("{}"), half_an_hour);
    assert_eq!(give_up_after(r#"{"maxCost": 2}"#), half_an_hour);
    assert_eq!(give_up_after(r#"{"maxRetries": 3}"#), None);
    assert_eq!(give_up_after(r#"{"max_attempts": 3}"#), None);
    assert_eq!(give_up_after(r#"{"template": "standard"}"#), None);
    assert_eq!(
        give_up_after(r#"{"max_retries": 3, "give_up_after": "8h"}"#),
        Some(Duration::from_secs(8 * 3600))
    );
    let timed = RetryPolicy::default();
    let changed = timed
        .with_json(&serde_json::json!({"kinds": {"timeout": {"maxRetries": 5}}}))
        .unwrap();
    assert_eq!(changed.give_up_after, half_an_hour);
    let counted = timed
        .with_json(&serde_json::json!({"maxRetries": 5}))
        .unwrap();
    assert_eq!(counted.give_up_after, None);
}

#[test]
fn attempts_snake_case_and_old_kind_names_are_accepted() {
    let policy = RetryPolicy::from_toml(
        r#"
        template = "patient"
        max_attempts = 5
        retryable_errors = ["RATE_LIMIT", "rate_limited", "auth_error"]
        max_elapsed = "20m"
        kinds.rate_limited.max_retries = 7
        "#,
    )
    .unwrap();
    assert_eq!((policy.max_retries, policy.backoff_base), (4, 5.0));
    assert_eq!(
        policy.retryable_errors,
        [
            FailureKind::RateLimit,
            FailureKind::RateLimit,
            FailureKind::AuthRequired
        ]
    );
    assert_eq!(policy.max_elapsed, Some(Duration::from_secs(1200)));
    assert_eq!(policy.kinds[&FailureKind::RateLimit].max_retries, Some(7));
}

#[test]
fn all_problems_are_reported_at_once_with_field_value_and_allowed_values() {
    let told = problems(
        r#"{"maxRetrys": 3, "backoffBase": -1, "backoffMultiplier": 0.5, "curve": "cubic", "maxElapsed": 20,
            "retryableErrors": ["rate_limt"], "maxRetries": 1.5, "kinds": {"timout": {}, "stuck": {"maxRetrys": 1}}}"#,
    );
    assert_eq!(
        told,
        [
            "`curve` is `cubic`: must be one of exponential, linear, fixed",
            "`kinds.stuck.maxRetrys` is 1: unknown key, did you mean `maxRetries`?",
            "`kinds` is `timout`: unknown kind `timout`, did you mean `timeout`?",
            "`maxElapsed` is 20: must be a string with a unit, like \"20m\", or null for no limit",
            "`maxRetries` is 1.5: must be an integer from 0 to 1000",
            "`maxRetrys` is 3: unknown key, did you mean `maxRetries`?",
            "`retryableErrors` is `rate_limt`: unknown kind `rate_limt`, did you mean `rate_limit`?",
            "`backoffBase` is -1: must be a number, 0 or more",
            "`backoffMultiplier` is 0.5: must be a number, 1 or more",
        ]
    );
}

#[test]
fn contradictory_values_are_rejected() {
    assert_eq!(
        problems(r#"{"backoffBase": 61}"#),
        ["`maxBackoff` is 60: must not be less than backoffBase (61)"]
    );
    assert_eq!(
        problems(r#"{"autoEscalate": true, "escalateAfterRetries": 4}"#),
        ["`escalateAfterRetries` is 4: must not exceed maxRetries (3) if autoEscalate is on"]
    );
    assert_eq!(
        problems(r#"{"kinds": {"timeout": {"backoffBase": 99}}}"#),
        ["`kinds.timeout.maxBackoff` is 60: must not be less than backoffBase (99)"]
    );
}

#[test]
fn values_that_are_not_numbers_are_rejected() {
    let error = RetryPolicy::from_toml("backoffBase = nan\nmaxCost = inf").unwrap_err();
    assert_eq!(error.problems.len(), 2, "{error}");
    let in_code = RetryPolicy {
        max_backoff: f64::NAN,
        ..RetryPolicy::default()
    };
    assert!(in_code.check().is_err());
    assert!(RetryPolicy::from_json("[]").is_err());
    assert!(RetryPolicy::from_json("{").is_err());
    assert!(RetryPolicy::from_json(r#"{"template": "standart"}"#).is_err());
}

#[test]
fn changes_can_be_applied_to_a_policy() {
    let changes = serde_json::json!({"maxRetries": 5, "kinds": {"stuck": {"maxRetries": 1}}});
    let policy = template("patient").unwrap().with_json(&changes).unwrap();
    assert_eq!((policy.max_retries, policy.backoff_base), (5, 5.0));
    let cleared = policy
        .with_json(&serde_json::json!({"kinds": {"stuck": null}}))
        .unwrap();
    assert!(cleared.kinds.is_empty());
}

/// A role's overrides are parsed separately, with the same checks.
#[test]
fn the_overrides_of_a_role_are_parsed_separately() {
    let role: KindPolicyOverrides =
        serde_json::from_str(r#"{"timeout": {"max_retries": 5}, "stuck": {"maxAttempts": 1}}"#)
            .unwrap();
    assert_eq!(role[&FailureKind::Timeout].max_retries, Some(5));
    assert_eq!(role[&FailureKind::Stuck].max_retries, Some(0));
    let wrong =
        serde_json::from_str::<RetryPolicyOverride>(r#"{"backoffBase": -2, "curv": "linear"}"#)
            .unwrap_err();
    assert!(
        wrong.to_string().contains("did you mean `curve`?"),
        "{wrong}"
    );
    assert!(
        wrong.to_string().contains("`override.backoffBase` is -2"),
        "{wrong}"
    );
}
