//! Secrets are removed before anything is stored or shown, and nothing else is.

use proptest::prelude::*;
use serde_json::json;
use unstuck_core::redact::{Redactor, secret_values};

mod corpus;
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
fn known_values_are_redacted_everywhere_in_any_encoding() {
    let env = [("APP_SECRET".to_owned(), "a\"b/c d1é".to_owned())];
    let redactor = Redactor::new(secret_values(env.into_iter()));
    let hidden = "x[redacted:environment]y";
    assert_eq!(redactor.redact("xa\"b/c d1éy"), hidden);
    assert_eq!(redactor.redact(r#"xa\"b/c d1éy"#), hidden);
    assert_eq!(redactor.redact("xa%22b%2Fc%20d1%C3%A9y"), hidden);
    assert_eq!(redactor.redact("xA\"B/C D1éy"), "xA\"B/C D1éy");
}

/// M6: plain base64 of a value, alone or after a user name.
#[test]
fn known_values_are_redacted_in_base64() {
    let env = [("APP_SECRET".to_owned(), "hunter2-hunter2!?".to_owned())];
    let redactor = Redactor::new(secret_values(env.into_iter()));
    for around in ["", "u:", "a-longer-user:"] {
        let text = format!("{around}hunter2-hunter2!?");
        let line = format!("data: {}", base64(text.as_bytes()));
        let shown = redactor.redact(&line);
        assert!(shown.contains("[redacted:environment]"), "{shown}");
    }
}

/// M6: plain base64 of every key with a known prefix.
#[test]
fn keys_are_redacted_in_base64() {
    let keys: Vec<_> = samples::unnamed()
        .into_iter()
        .filter(samples::Unnamed::begins_with_literal)
        .collect();
    assert!(keys.len() > 120, "{}", keys.len());
    for key in keys {
        for end in ["", "\n"] {
            let encoded = base64(format!("{}{end}", key.secret).as_bytes());
            let line = format!("value: {encoded} and more");
            let shown = redactor().redact(&line).into_owned();
            assert!(!shown.contains(&encoded[4..20]), "{}: {shown}", key.secret);
            assert!(shown.ends_with(" and more"), "{shown}");
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = three
            .iter()
            .chain([&0, &0])
            .take(3)
            .fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        for place in 0..4 {
            let digit = char::from(DIGITS[number >> (18 - 6 * place) & 63]);
            text.push(if place > three.len() { '=' } else { digit });
        }
    }
    text
}

/// A terminal of 80 columns wraps a key at the end of a line: no usable part of it remains.
#[test]
fn key_wrapped_anywhere_is_redacted() {
    for key in samples::unnamed() {
        let secret = &key.secret;
        for cut in (1..secret.len()).filter(|cut| secret.is_char_boundary(*cut)) {
            let before = "a long line of a log that goes on until it is at the end of the screen: ";
            let (left, right) = secret.split_at(cut);
            for end in ["\n", "\r\n", "\n    "] {
                let text = format!("{before}{left}{end}{right} and more\n");
                let whole = redactor().redact(&text).into_owned();
                for part in [left, right] {
                    let is_left = part.len() >= 16 && whole.contains(part);
                    assert!(!is_left, "{secret} cut at {cut}: {whole}");
                }
                assert!(whole.starts_with(before) && whole.ends_with(" and more\n"));
                let streamed = streamed(&redactor(), text.as_bytes(), &[cut, 80, 3, 7]);
                assert_eq!(String::from_utf8(streamed).unwrap(), whole, "{text}");
            }
        }
    }
}

#[test]
fn wrapped_known_value_is_redacted() {
    let redactor = Redactor::new(["Kn0wn-value-of-some-length".to_owned()]);
    let before = "x".repeat(70);
    let text = format!("{before} Kn0wn-value-\nof-some-length\nnext\n");
    let hidden = format!("{before} [redacted:environment]\n[redacted:environment]\nnext\n");
    assert_eq!(redactor.redact(&text), hidden);
    let pieces = streamed(&redactor, text.as_bytes(), &[75, 9, 4]);
    assert_eq!(String::from_utf8(pieces).unwrap(), hidden);
}

/// A key at the end of a line does not include the first word of the next one.
#[test]
fn text_after_a_key_on_the_next_line_stays() {
    let key = "sk-ant-api03-Zx9_q8-W7vutsrq";
    let text = format!("Incorrect API key provided: {key}\nPlease check it.\n");
    let shown = redactor().redact(&text).into_owned();
    assert!(shown.ends_with("\nPlease check it.\n"), "{shown}");
}

/// Lock files, hashes and ids in bulk: none of them is mistaken for a key.
#[test]
fn hashes_and_ids_in_bulk_stay() {
    let lock = include_str!("../../../../Cargo.lock");
    assert_eq!(redactor().redact(lock), lock);
    let mut state = 88_172_645_463_325_252_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = String::new();
    for _ in 0..3000 {
        let mut hex = |length: usize| -> String {
            let digits: String = (0..4).map(|_| format!("{:016x}", draw())).collect();
            digits[..length].to_owned()
        };
        let (sha1, sha256) = (hex(40), hex(64));
        let uuid = format!("{}-{}-4{}-8{}-{}", hex(8), hex(4), hex(3), hex(3), hex(12));
        let bytes: Vec<u8> = (0..8).flat_map(|_| draw().to_le_bytes()).collect();
        text.push_str(&format!(
            "commit {sha1}\n  id {uuid} sha256:{sha256}\n    \"integrity\": \"sha512-{}\",\nh1:{}\n",
            base64(&bytes),
            base64(&bytes[..32]),
        ));
    }
    assert_eq!(redactor().redact(&text), text);
}

#[test]
fn text_without_secrets_is_not_copied() {
    let text = "error: 3 tests failed, see token count and key facts";
    assert!(matches!(
        redactor().redact(text),
        std::borrow::Cow::Borrowed(_)
    ));
    assert!(!redactor().contains_secret(text) && redactor().contains_secret("my Kn0wn-value"));
}

#[test]
fn key_name_identifies_a_secret_json_field() {
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
fn value_after_a_secret_flag_is_redacted_in_a_command_line() {
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
fn secret_at_the_cut_of_a_very_long_line_is_redacted() {
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
fn endless_secret_is_dropped_without_buffering() {
    let redactor = redactor();
    let line = format!("a password={} b", "x1y2".repeat(100_000));
    let out = streamed(&redactor, line.as_bytes(), &[]);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "a password=[redacted:password] b"
    );
}

#[test]
fn progress_without_line_ends_is_shown_incrementally() {
    let redactor = redactor();
    let mut stream = redactor.stream();
    assert_eq!(stream.push(b"10%\r20%\r3"), b"10%\r20%\r");
    assert_eq!(stream.finish(), b"3");
}

/// Generates text around a secret that is not part of it.
fn around() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ a-z0-9é€\"\\\\{}:,=\n-]{0,60}".prop_map(|text| text),
        "(the|error|tokens|key|max_tokens: 4096|/usr/lib|\"a\":1| |\n|,){0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn secret_is_redacted_anywhere_in_any_chunking(
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
    fn known_value_is_redacted_anywhere(before in ".{0,40}", after in ".{0,40}", cut in 0_usize..60) {
        let text = format!("{before}Kn0wn-value{after}");
        let out = streamed(&redactor(), text.as_bytes(), &[cut]);
        prop_assert!(!String::from_utf8_lossy(&out).contains("Kn0wn-value"));
    }

    #[test]
    fn redaction_is_idempotent(secrets in prop::collection::vec((samples::any_secret(), around()), 1..4)) {
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
    fn any_bytes_are_accepted(bytes in prop::collection::vec(any::<u8>(), 0..300), cuts in prop::collection::vec(0_usize..50, 0..6)) {
        streamed(&redactor(), &bytes, &cuts);
    }
}
