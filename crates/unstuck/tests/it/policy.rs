//! `unstuck policy`

use serde_json::json;

use crate::Place;
use crate::output_snapshot::assert_output;

/// S4-18: the agreed fields in camelCase, as the REST API serves them.
#[test]
fn policy_is_printed_as_json_in_the_agreed_format() {
    let policy = Place::new().json(&["policy", "show", "standard", "--json"], "");
    for (field, value) in [
        ("id", json!("standard")),
        ("maxRetries", json!(3)),
        ("backoffBase", json!(1.0)),
        ("backoffMultiplier", json!(2.0)),
        ("maxBackoff", json!(30.0)),
        ("autoEscalate", json!(false)),
        ("jitter", json!("full")),
        ("curve", json!("exponential")),
    ] {
        assert_eq!(policy[field], value, "{field}");
    }
    assert!(
        policy["retryableErrors"].is_array()
            && policy["name"].is_string()
            && policy["escalateAfterRetries"].is_u64()
    );
}

#[test]
fn templates_are_listed() {
    let list = Place::new().json(&["policy", "list", "--json"], "");
    let ids: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "resilient",
            "standard",
            "patient",
            "pipeline",
            "critical",
            "thrifty",
            "off"
        ]
    );
    let shown = Place::new().run(&["policy", "list"], "").stdout;
    // The delays are what this is about, so that they are not redacted.
    insta::assert_snapshot!(shown);
}

#[test]
fn policy_file_is_validated_as_a_whole() {
    let place = Place::new();
    place.write("good.toml", "template = \"patient\"\nmaxRetries = 5\n");
    place.write(
        "bad.json",
        r#"{"maxRetries": -1, "backofBase": 2, "retryableErrors": ["rate_limt"]}"#,
    );
    let good = place.run(&["policy", "check", "good.toml"], "");
    assert_eq!(good.code, 0);
    // The delays are what this is about, so that they are not redacted.
    insta::assert_snapshot!(good.stdout);
    let bad = place.run(&["policy", "check", "bad.json"], "");
    assert_eq!((bad.code, bad.stdout.as_str()), (2, ""));
    assert_output!(place, bad.stderr);
}

#[test]
fn unknown_policy_is_reported_with_the_known_ones() {
    let place = Place::new();
    let ended = place.run(&["policy", "show", "brave"], "");
    assert_eq!(ended.code, 2);
    assert_output!(place, ended.stderr);
}
