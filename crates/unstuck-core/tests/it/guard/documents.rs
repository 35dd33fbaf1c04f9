//! The proposal document `recovery.json`: all or nothing.

use serde_json::{Value, json};
use unstuck_core::command_policy::{
    DEFAULT_TIMEOUT_SECONDS, MAX_BYTES, Proposal, ProposalConfidence, RepairCategory,
    RepairProblemSeverity,
};

use super::{document, parse};

/// Returns a document with one value changed; null inside `set` is null, not absent.
fn with(path: &str, value: Value) -> Value {
    let mut changed = document("npm ci");
    *changed.pointer_mut(path).unwrap() = value;
    changed
}

fn without(place: &str, key: &str) -> Value {
    let mut changed = document("npm ci");
    let object = changed.pointer_mut(place).unwrap();
    object.as_object_mut().unwrap().remove(key).unwrap();
    changed
}

fn and(place: &str, key: &str, value: Value) -> Value {
    let mut changed = document("npm ci");
    let object = changed.pointer_mut(place).unwrap();
    object
        .as_object_mut()
        .unwrap()
        .insert(key.to_owned(), value);
    changed
}

fn refused(bytes: &[u8]) -> String {
    Proposal::parse(bytes).unwrap_err().to_string()
}

/// S3-03, S3-06 to S3-15: the fields of a proposal and their defaults.
#[test]
fn proposal_is_parsed_field_by_field() {
    let mut full = document(" npm ci\n");
    full["fallback"] = json!({ "command": "npm install", "confidence": "low" });
    let proposal = parse(&full).unwrap();
    assert_eq!(proposal.timestamp, "2026-01-23T05:36:33Z");
    assert_eq!(proposal.category, RepairCategory::Dependency);
    assert_eq!(proposal.severity, RepairProblemSeverity::Blocking);
    assert_eq!(proposal.diagnosis.evidence.len(), 1);
    assert_eq!(proposal.recovery.command, " npm ci\n", "as it stood there");
    assert_eq!(proposal.recovery.working_dir.as_deref(), Some("."));
    assert_eq!(proposal.recovery.timeout_seconds, 300);
    assert_eq!(proposal.recovery.confidence, ProposalConfidence::High);
    let fallback = proposal.fallback.unwrap();
    assert_eq!(
        (fallback.command.as_str(), fallback.confidence),
        ("npm install", ProposalConfidence::Low)
    );

    let mut short = document("npm ci");
    let recovery = short["recovery"].as_object_mut().unwrap();
    recovery.remove("working_dir");
    recovery.remove("timeout_seconds");
    let short = parse(&short).unwrap();
    assert_eq!(short.recovery.working_dir, None);
    assert_eq!(short.recovery.timeout_seconds, DEFAULT_TIMEOUT_SECONDS);
    assert_eq!(DEFAULT_TIMEOUT_SECONDS, 120);
    assert_eq!(short.fallback, None);
}

/// S3-06 to S3-15: null means absent for optional fields, and is invalid for others.
#[test]
fn null_is_absent_only_for_optional_fields() {
    for path in ["/recovery/working_dir", "/recovery/timeout_seconds"] {
        assert!(parse(&with(path, Value::Null)).is_ok(), "{path}");
    }
    assert!(parse(&and("", "fallback", Value::Null)).is_ok());
    for path in [
        "/version",
        "/timestamp",
        "/category",
        "/severity",
        "/diagnosis",
        "/diagnosis/error_pattern",
        "/diagnosis/root_cause",
        "/diagnosis/evidence",
        "/recovery",
        "/recovery/command",
        "/recovery/expected_outcome",
        "/recovery/confidence",
    ] {
        assert!(parse(&with(path, Value::Null)).is_err(), "{path}");
    }
}

/// S3-06 to S3-15: every required field is required.
#[test]
fn missing_field_is_named() {
    let required = [
        ("", "version"),
        ("", "timestamp"),
        ("", "category"),
        ("", "severity"),
        ("", "diagnosis"),
        ("", "recovery"),
        ("/diagnosis", "error_pattern"),
        ("/diagnosis", "root_cause"),
        ("/diagnosis", "evidence"),
        ("/recovery", "command"),
        ("/recovery", "expected_outcome"),
        ("/recovery", "confidence"),
    ];
    for (place, key) in required {
        let name = format!("{place}/{key}")[1..].replace('/', ".");
        let told = parse(&without(place, key)).unwrap_err();
        assert_eq!(told, format!("`{name}` is missing"));
    }
    for key in ["command", "confidence"] {
        let mut fallback = json!({ "command": "npm install", "confidence": "low" });
        fallback.as_object_mut().unwrap().remove(key);
        assert!(parse(&and("", "fallback", fallback)).is_err(), "{key}");
    }
}

#[test]
fn value_of_another_type_is_never_converted() {
    let wrong = [
        ("/version", json!([2, 0, "1", true, 1.0, [1], -1, {}])),
        ("/timestamp", json!([0, [], {}, true])),
        (
            "/category",
            json!(["deps", "DEPENDENCY", " dependency", "", 1, ["dependency"]]),
        ),
        ("/severity", json!(["critical", "Blocking", 1])),
        ("/diagnosis", json!(["x", [], ["a", "b", []], 1])),
        ("/diagnosis/error_pattern", json!([1, [], {}])),
        ("/diagnosis/root_cause", json!([1, [], {}])),
        (
            "/diagnosis/evidence",
            json!(["x", {}, [1], [["x"]], [null]]),
        ),
        (
            "/recovery",
            json!(["npm ci", ["npm ci", ".", 300, "x", "high"], 1]),
        ),
        (
            "/recovery/command",
            json!(["", "  \n\t ", ["npm", "ci"], { "cmd": "npm ci" }, 7, true]),
        ),
        ("/recovery/working_dir", json!([0, ["."], {}, false])),
        (
            "/recovery/timeout_seconds",
            json!([0, -1, 3601, 300.5, 300.0, "300", [300], true, 1e300]),
        ),
        ("/recovery/expected_outcome", json!([1, []])),
        (
            "/recovery/confidence",
            json!(["High", "certain", 0.9, ["high"], ""]),
        ),
    ];
    for (path, values) in wrong {
        for value in values.as_array().unwrap() {
            let told = parse(&with(path, value.clone()));
            assert!(told.is_err(), "{path} = {value}");
        }
    }
    for fallback in [json!("id"), json!(["npm ci", "high"]), json!(1), json!({})] {
        assert!(
            parse(&and("", "fallback", fallback.clone())).is_err(),
            "{fallback}"
        );
    }
}

/// S3-13: the range of the timeout.
#[test]
fn timeout_is_a_whole_number_up_to_an_hour() {
    for seconds in [1, 3600] {
        let proposal = parse(&with("/recovery/timeout_seconds", json!(seconds))).unwrap();
        assert_eq!(proposal.recovery.timeout_seconds, seconds);
    }
    let text = document("npm ci").to_string();
    for written in [
        "3e2",
        "0300",
        "0x12c",
        "+300",
        "-0",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "300.",
    ] {
        let text = text.replace("300", written);
        assert!(Proposal::parse(text.as_bytes()).is_err(), "{written}");
    }
}

/// S3-07: strict RFC 3339 only.
#[test]
fn timestamp_is_rfc_3339() {
    for good in [
        "2026-01-23T05:36:33Z",
        "2026-01-23t05:36:33z",
        "2026-01-23T05:36:33.123456789012Z",
        "2026-01-23T05:36:33+01:00",
        "2026-01-23T05:36:33-00:00",
        "2024-02-29T23:59:60Z",
        "0001-01-01T00:00:00Z",
    ] {
        assert!(parse(&with("/timestamp", json!(good))).is_ok(), "{good}");
    }
    for bad in [
        "",
        "now",
        "2026-01-23",
        "2026-01-23T05:36:33",
        "2026-01-23 05:36:33Z",
        "2026-01-23T05:36Z",
        "20260123T053633Z",
        "2026-1-23T05:36:33Z",
        "2026-13-23T05:36:33Z",
        "2026-02-29T05:36:33Z",
        "2026-01-23T24:00:00Z",
        "2026-01-23T05:61:33Z",
        "2026-01-23T05:36:33.Z",
        "2026-01-23T05:36:33+1:00",
        "2026-01-23T05:36:33+0100",
        "2026-01-23T05:36:33+24:00",
        "2026-01-23T05:36:33+01:60",
        "2026-01-23T05:36:33 Z",
        " 2026-01-23T05:36:33Z",
        "2026-01-23T05:36:33Z\n",
        "2026-01-23T05:36:33[UTC]",
        "２026-01-23T05:36:33Z",
        "2026-01-23T05:36:33é",
        "1769146593",
    ] {
        assert!(parse(&with("/timestamp", json!(bad))).is_err(), "{bad}");
    }
}

#[test]
fn unknown_fields_are_ignored_outside_and_rejected_where_they_could_act() {
    assert!(parse(&and("", "notes", json!({ "any": ["thing"] }))).is_ok());
    assert!(parse(&and("/diagnosis", "seen_before", json!(true))).is_ok());
    for key in [
        "env", "shell", "user", "approved", "stdin", "Command", "command ", "timeout", "",
    ] {
        let told = parse(&and("/recovery", key, json!("x"))).unwrap_err();
        assert!(told.contains("is not a known field"), "{told}");
        let fallback = json!({ "command": "x", "confidence": "low", key: "x" });
        assert!(parse(&and("", "fallback", fallback)).is_err(), "{key}");
    }
    let fallback = json!({ "command": "x", "confidence": "low", "working_dir": "." });
    assert!(parse(&and("", "fallback", fallback)).is_err());
}

#[test]
fn document_is_exactly_one_object() {
    let good = document("npm ci").to_string();
    assert!(Proposal::parse(format!(" \t\r\n{good}\n\n").as_bytes()).is_ok());
    let around = [
        ("\u{feff}", ""),
        ("", "\u{feff}"),
        ("", "x"),
        ("", "{}"),
        ("", ","),
        ("", "\0"),
        ("\u{b}", ""),
        ("\u{a0}", ""),
        ("[", "]"),
        ("// note\n", ""),
        ("", " # note"),
    ];
    for (before, after) in around {
        let text = format!("{before}{good}{after}");
        assert!(
            Proposal::parse(text.as_bytes()).is_err(),
            "{before:?} {after:?}"
        );
    }
    for other in [
        "",
        "   ",
        "null",
        "true",
        "1",
        "\"npm ci\"",
        "[]",
        "[1]",
        "{",
        "{}",
        "version: 1",
        "{'version': 1}",
        "{version: 1}",
    ] {
        refused(other.as_bytes());
    }
    for cut in 0..good.len() {
        refused(&good.as_bytes()[..cut]);
    }
    let utf_16: Vec<_> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused(&utf_16);
    refused(b"\x1f\x8b\x08\x00");
}

#[test]
fn invalid_utf8_is_rejected_everywhere() {
    let good = document("npm ci").to_string();
    let places = ["npm ci", "dependencies are missing", "Cannot find module"];
    for place in places {
        for written in [
            r"\ud800", r"\udc00x", r"\ud800A", r"\x20", r"\u12", "\u{1}", "\n", "\t",
        ] {
            let text = good.replace(place, &format!("a{written}b"));
            assert!(
                Proposal::parse(text.as_bytes()).is_err(),
                "{place}: {written:?}"
            );
        }
        for raw in [
            &b"\xff"[..],
            b"\xc0\x80",
            b"\xed\xa0\x80",
            b"\xf5\x80\x80\x80",
        ] {
            let (before, after) = good.split_once(place).unwrap();
            let bytes = [before.as_bytes(), raw, after.as_bytes()].concat();
            refused(&bytes);
        }
    }
    let pair = good.replace("Cannot find module", r"\ud83d\ude42");
    assert!(
        Proposal::parse(pair.as_bytes()).is_ok(),
        "a whole pair is a character"
    );
}

/// S3-47: with duplicate keys, neither the first nor the last may win.
#[test]
fn duplicate_key_is_rejected_at_any_level() {
    let good = document("npm ci").to_string();
    let twice = [
        (r#""command":"#, r#""command":"id","command":"#),
        (r#""command":"#, r#""comm\u0061nd":"id","command":"#),
        (r#""version":1"#, r#""version":1,"version":1"#),
        (
            r#""version":1"#,
            r#""version":1,"notes":{"a":{"b":1,"b":2}}"#,
        ),
        (
            r#""version":1"#,
            r#""version":1,"notes":[{"\u0062":1,"b":2}]"#,
        ),
        (r#""root_cause":"#, r#""root_cause":"x","root_cause":"#),
    ];
    for (one, two) in twice {
        let text = good.replacen(one, two, 1);
        assert_ne!(text, good);
        let told = refused(text.as_bytes());
        assert!(told.contains("duplicate key"), "{told}");
    }
}

#[test]
fn nesting_depth_is_bounded_even_in_unused_values() {
    let nested = |depth: usize, open: &str, close: &str| {
        let good = document("npm ci").to_string();
        let extra = format!("{}{}", open.repeat(depth), close.repeat(depth));
        good.replacen("{", &format!("{{\"extra\":{extra},"), 1)
    };
    // The document itself is the first of 32 levels.
    assert!(Proposal::parse(nested(31, "[", "]").as_bytes()).is_ok());
    assert!(refused(nested(32, "[", "]").as_bytes()).contains("32"));
    let objects = nested(32, "{\"a\":", "}").replace("\"a\":}", "\"a\":1}");
    assert!(refused(objects.as_bytes()).contains("32"));
    refused("[".repeat(MAX_BYTES).as_bytes());
    refused("{\"a\":".repeat(50_000).as_bytes());
}

#[test]
fn sizes_are_bounded() {
    let command = |bytes| with("/recovery/command", json!("a".repeat(bytes)));
    assert!(parse(&command(4096)).is_ok());
    assert!(parse(&command(4097)).unwrap_err().contains("4096"));
    // The limit is in bytes, not characters.
    assert!(parse(&with("/recovery/command", json!("é".repeat(2049)))).is_err());
    let folder = |bytes| with("/recovery/working_dir", json!("a".repeat(bytes)));
    assert!(parse(&folder(1024)).is_ok());
    assert!(parse(&folder(1025)).is_err());
    for path in [
        "/diagnosis/root_cause",
        "/diagnosis/error_pattern",
        "/recovery/expected_outcome",
    ] {
        assert!(parse(&with(path, json!("x".repeat(65_536)))).is_ok());
        assert!(parse(&with(path, json!("x".repeat(65_537)))).is_err());
    }
    assert!(parse(&with("/diagnosis/evidence", json!(["x".repeat(65_537)]))).is_err());
    let good = document("npm ci").to_string();
    let padded = |bytes: usize| format!("{good}{}", " ".repeat(bytes - good.len()));
    assert!(Proposal::parse(padded(MAX_BYTES).as_bytes()).is_ok());
    assert!(refused(padded(MAX_BYTES + 1).as_bytes()).contains("262144"));
    assert_eq!(MAX_BYTES, 262_144);
}

/// S3-47: a document with characters that are not displayed faithfully is not examined further.
#[test]
fn hidden_characters_are_rejected_in_commands_and_directories() {
    for hidden in [
        "\0",
        "\u{b}",
        "\u{c}",
        "\u{1b}[2J",
        "\u{7f}",
        "\u{9b}",
        "\u{a0}",
        "\u{202e}",
        "\u{200b}",
        "\u{e0061}",
        "\u{fe0f}",
        "\u{e000}",
        "\u{ffff}",
    ] {
        for at in ["/recovery/command", "/recovery/working_dir"] {
            for text in [
                format!("a{hidden}b"),
                format!("{hidden}ab"),
                format!("ab{hidden}"),
            ] {
                let told = parse(&with(at, json!(text))).unwrap_err();
                assert!(told.contains("invisible or misleading"), "{text:?}: {told}");
            }
        }
        let fallback = json!({ "command": format!("npm{hidden}ci"), "confidence": "high" });
        assert!(parse(&and("", "fallback", fallback)).is_err(), "{hidden:?}");
        // Fields that decide nothing may contain anything.
        assert!(parse(&with("/diagnosis/root_cause", json!(hidden))).is_ok());
    }
    assert!(parse(&with("/recovery/command", json!("a\tb\nc"))).is_ok());
    assert!(
        parse(&with("/recovery/command", json!("npm ci\r\n"))).is_ok(),
        "trimmed at the ends"
    );
    assert!(parse(&with("/recovery/command", json!("npm\rci"))).is_err());
    assert!(parse(&with("/recovery/working_dir", json!("a\tb"))).is_err());
    assert!(parse(&with("/recovery/working_dir", json!("a\n"))).is_err());
}

/// S3-50: messages about a document contain no control sequences and no secrets.
#[test]
fn messages_about_a_document_are_harmless() {
    let key = "\u{1b}]52;c;x\u{7}\n\u{202e}sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAA";
    let mut told = vec![parse(&and("/recovery", key, json!(1))).unwrap_err()];
    let twice = format!("{{{0}:1,{0}:2}}", json!(key));
    told.push(refused(twice.as_bytes()));
    for told in told {
        assert!(
            !told.chars().any(|c| c.is_control() || c == '\u{202e}'),
            "{told:?}"
        );
        assert!(!told.contains("sk-ant-api03"), "{told}");
    }
}
