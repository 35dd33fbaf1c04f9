//! Secrets are gone before anything is stored or shown, and nothing else is.

use proptest::prelude::*;
use serde_json::json;
use unstuck_core::redact::{Redactor, secret_values};

mod samples;

fn redactor() -> Redactor {
    Redactor::new(["Kn0wn-value".to_owned()])
}

fn streamed(redactor: &Redactor, text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    let mut rest = text;
    for cut in cuts {
        let (now, later) = rest.split_at((*cut).min(rest.len()));
        out.extend(stream.push(now));
        rest = later;
    }
    out.extend(stream.push(rest));
    out.extend(stream.finish());
    out
}

#[test]
fn known_values_are_hidden_wherever_they_are_and_however_they_are_written() {
    let env = [("APP_SECRET".to_owned(), "a\"b/c d1é".to_owned())];
    let redactor = Redactor::new(secret_values(env.into_iter()));
    let hidden = "x[redacted:environment]y";
    assert_eq!(redactor.redact("xa\"b/c d1éy"), hidden);
    assert_eq!(redactor.redact(r#"xa\"b/c d1éy"#), hidden);
    assert_eq!(redactor.redact("xa%22b%2Fc%20d1%C3%A9y"), hidden);
    assert_eq!(redactor.redact("xA\"B/C D1éy"), "xA\"B/C D1éy");
}

#[test]
fn a_text_without_secrets_is_not_copied() {
    let text = "error: 3 tests failed, see token count and key facts";
    assert!(matches!(
        redactor().redact(text),
        std::borrow::Cow::Borrowed(_)
    ));
    assert!(!redactor().finds(text) && redactor().finds("my Kn0wn-value"));
}

#[test]
fn a_key_betrays_the_value_of_a_json_field() {
    let mut value = json!({
        "api_key": "swordfish1", "password": "swordfish", "token": "hello", "max_tokens": 4096, "tokens": "12345678",
        "accessToken": "q7h2k9zt4m", "nested": [{"Authorization": "Bearer q7h2k9zt4m"}],
        "args": ["tool", "--api-key", "q7h2k9zt4m", "--verbose", "q7h2k9zt4m"], "Kn0wn-value": 1,
    });
    redactor().redact_value(&mut value);
    let expected = json!({
        "api_key": "[redacted:secret]", "password": "[redacted:secret]", "token": "hello", "max_tokens": 4096, "tokens": "12345678",
        "accessToken": "[redacted:secret]", "nested": [{"Authorization": "Bearer [redacted:bearer_token]"}],
        "args": ["tool", "--api-key", "[redacted:secret]", "--verbose", "q7h2k9zt4m"], "[redacted:environment]": 1,
    });
    assert_eq!(value, expected);
}

#[test]
fn the_value_after_a_secret_flag_is_hidden_in_a_command_line() {
    let command = ["tool", "--token", "q7h2k9zt4m", "--model", "gpt-4o-mini"].map(str::to_owned);
    let expected = [
        "tool",
        "--token",
        "[redacted:secret]",
        "--model",
        "gpt-4o-mini",
    ];
    assert_eq!(redactor().redact_command(&command), expected);
}

#[test]
fn a_secret_at_the_cut_of_a_very_long_line_is_hidden() {
    let redactor = redactor();
    for before in (56 * 1024 - 40..56 * 1024 + 40).step_by(9) {
        let line = format!(
            "{} password=hunter2hunter2 {}",
            "x".repeat(before),
            "y".repeat(70_000)
        );
        let out =
            String::from_utf8(streamed(&redactor, line.as_bytes(), &[60_000, 9_000])).unwrap();
        assert_eq!(out, redactor.redact(&line), "{before}");
    }
}

#[test]
fn a_secret_that_does_not_end_is_dropped_without_being_kept_in_memory() {
    let redactor = redactor();
    let line = format!("a password={} b", "x1y2".repeat(100_000));
    let out = streamed(&redactor, line.as_bytes(), &[]);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "a password=[redacted:password] b"
    );
}

#[test]
fn progress_that_never_ends_a_line_is_shown_as_it_goes() {
    let redactor = redactor();
    let mut stream = redactor.stream();
    assert_eq!(stream.push(b"10%\r20%\r3"), b"10%\r20%\r");
    assert_eq!(stream.finish(), b"3");
}

/// Anything that stands around a secret without being a part of it.
fn around() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ a-z0-9é€\"\\\\{}:,=\n-]{0,60}".prop_map(|text| text),
        "(the|error|tokens|key|max_tokens: 4096|/usr/lib|\"a\":1| |\n|,){0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_secret_is_gone_wherever_it_is_and_however_the_stream_is_cut(
        (secret, before, after) in (samples::any_secret(), around(), around()),
        cuts in prop::collection::vec(0_usize..40, 0..12),
    ) {
        let text = format!("{before}\n{} {after}", secret.text);
        let redactor = redactor();
        let whole = redactor.redact(&text).into_owned();
        prop_assert!(!whole.contains(&secret.hidden), "{whole}");
        let out = streamed(&redactor, text.as_bytes(), &cuts);
        prop_assert_eq!(String::from_utf8_lossy(&out), whole);
    }

    #[test]
    fn a_known_value_is_gone_wherever_it_is(before in ".{0,40}", after in ".{0,40}", cut in 0_usize..60) {
        let text = format!("{before}Kn0wn-value{after}");
        let out = streamed(&redactor(), text.as_bytes(), &[cut]);
        prop_assert!(!String::from_utf8_lossy(&out).contains("Kn0wn-value"));
    }

    #[test]
    fn redacting_twice_changes_nothing(secrets in prop::collection::vec((samples::any_secret(), around()), 1..4)) {
        let text: String = secrets.iter().map(|(secret, after)| format!("{}{after}", secret.text)).collect();
        let once = redactor().redact(&text).into_owned();
        prop_assert_eq!(redactor().redact(&once), once.as_str());
    }

    #[test]
    fn json_stays_json(secrets in prop::collection::vec((around(), samples::any_secret(), around()), 1..4)) {
        let fields = secrets.iter().map(|(before, secret, after)| {
            (before.clone(), json!([secret.text, after, 12_345_678, format!("{before}password="), {"password:": [1, true]}]))
        });
        let text = serde_json::Value::Object(fields.collect()).to_string();
        let redacted = redactor().redact(&text).into_owned();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&redacted).is_ok(), "{redacted}");
        let twice = serde_json::Value::from(text).to_string();
        let redacted = redactor().redact(&twice).into_owned();
        prop_assert!(serde_json::from_str::<String>(&redacted).is_ok(), "{redacted}");
    }

    #[test]
    fn ordinary_text_is_unchanged(text in "([a-zA-Z]{1,12}[ .,\n]|[0-9]{1,6} |[a-f0-9]{40} |src/[a-z]{3,9}\\.rs:[0-9]{1,3} ){0,30}") {
        prop_assert_eq!(redactor().redact(&text), text.as_str());
    }

    #[test]
    fn any_bytes_may_come(bytes in prop::collection::vec(any::<u8>(), 0..300), cuts in prop::collection::vec(0_usize..50, 0..6)) {
        streamed(&redactor(), &bytes, &cuts);
    }
}
