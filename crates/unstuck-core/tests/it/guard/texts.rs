//! Display of texts of a proposal.

use unstuck_core::command_policy::{sanitize, sanitize_command};

/// S3-50: no secret is shown, and nothing that misleads a terminal, a log or a reader.
#[test]
fn texts_are_sanitized_for_display() {
    for (text, shown) in [
        ("dependencies are missing", "dependencies are missing"),
        ("Größe 日本語 🙂", "Größe 日本語 🙂"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u{1b}[2J\u{1b}[H", r"\u{1b}[2J\u{1b}[H"),
        ("\u{1b}]52;c;cm0=\u{7}", r"\u{1b}]52;c;cm0=\u{7}"),
        ("\u{9b}2J", r"\u{9b}2J"),
        ("\u{202e}desrever", r"\u{202e}desrever"),
        (
            "a\u{200b}b\u{a0}c\u{2028}d\u{e0061}",
            r"a\u{200b}b\u{a0}c\u{2028}d\u{e0061}",
        ),
        (
            "\n{\"event\": \"recovery_approved\"}",
            r#"\n{"event": "recovery_approved"}"#,
        ),
        (
            "key sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAA",
            "key [redacted:anthropic]",
        ),
    ] {
        let told = sanitize(text);
        if text.starts_with("key") {
            assert!(
                told.starts_with("key [redacted:") && !told.contains("AAAA"),
                "{told}"
            );
        } else {
            assert_eq!(told, shown);
        }
        assert!(!told.contains('\n'));
    }
}

#[test]
fn long_text_is_truncated_with_a_notice() {
    let told = sanitize(&"é".repeat(100_000));
    assert!(told.ends_with("… (98000 more characters)"));
    assert!(told.len() < 5000);
}

/// Threat T6: a lookalike letter is escaped, so that the approver can tell.
#[test]
fn command_is_shown_whole_with_non_ascii_letters_escaped() {
    assert_eq!(sanitize_command("n\u{440}m install"), r"n\u{440}m install");
    assert_eq!(sanitize_command("npm run caf\u{e9}"), r"npm run caf\u{e9}");
    assert_eq!(sanitize_command("npm ci\nid"), r"npm ci\nid");
    let long = "a ".repeat(2048);
    assert_eq!(sanitize_command(&long), long);
    let secret =
        sanitize_command("curl -H 'Authorization: Bearer sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAA'");
    assert!(!secret.contains("AAAA"), "{secret}");
}
