//! `unstuck classify`

use serde_json::{Value, json};

use crate::Place;
use crate::output_snapshot::assert_output;

#[test]
fn piped_text_gets_a_short_diagnosis() {
    let ended = Place::new().run(
        &["classify", "--exit-code", "1"],
        "bash: line 1: rg: command not found\n",
    );
    insta::assert_snapshot!(ended.stdout, @"
    command_not_found  Command not found (systematic, confidence 85%)
      evidence bash: line 1: rg: command not found
      next     retry with changes, see `unstuck plan` (level 2)
      hint     Check the spelling, or install the command.
      rule     command_not_found/shell
    ");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}

#[test]
fn flags_describe_an_api_response() {
    let place = Place::new();
    let body = place.write(
        "answer.json",
        r#"{"error":{"code":"rate_limit_exceeded","message":"Slow down"}}"#,
    );
    let args = [
        "classify",
        "--provider",
        "openai",
        "--status",
        "429",
        "--header",
        "Retry-After: 7",
        "--json",
        "--body",
    ];
    let answer = place.json(&[&args[..], &[body.to_str().unwrap()]].concat(), "");
    assert_eq!(answer["kind"], "rate_limit");
    assert_eq!(answer["category"], "transient");
    assert_eq!(answer["level"], "same");
    assert_eq!(answer["retryable"], true);
    assert_eq!(answer["retry_after_s"], 7.0);
    assert_eq!(answer["evidence"]["rule"], "rate_limit/code");
}

#[test]
fn jsonl_lines_are_answered_in_order_despite_invalid_ones() {
    let lines = [
        r#"{"id":1,"layer":"agent","tool":"claude","exit_code":1,"stdout":"You've hit your limit · resets 11pm","now":"2026-11-15T20:00:00+01:00","family":"ignored"}"#,
        "{broken",
        "",
        r#"{"id":"two","status":"x"}"#,
        r#"{"id":null,"tool":"grep","exit_code":1,"stdout":"","stderr":null}"#,
    ];
    let ended = Place::new().run(&["classify", "--jsonl"], lines.join("\n"));
    let answers: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(ended.code, 0);
    assert_eq!(answers.len(), 4);
    assert_eq!(
        (
            &answers[0]["id"],
            &answers[0]["kind"],
            &answers[0]["retry_after_s"]
        ),
        (&json!(1), &json!("rate_limit_timed"), &json!(10800.0))
    );
    assert!(
        answers[1]["error"]
            .as_str()
            .unwrap()
            .starts_with("not JSON")
    );
    assert_eq!(
        (&answers[2]["id"], &answers[2]["line"]),
        (&json!("two"), &json!(4))
    );
    assert_eq!(
        (&answers[3]["id"], &answers[3]["kind"], &answers[3]["level"]),
        (&Value::Null, &json!("none"), &Value::Null)
    );
    for field in [
        "id",
        "kind",
        "category",
        "level",
        "retryable",
        "retry_after_s",
        "confidence",
        "evidence",
        "fingerprint",
    ] {
        assert!(answers[0].get(field).is_some(), "{field}");
    }
}

#[test]
fn any_bytes_and_megabytes_are_accepted() {
    let mut bytes = vec![0xff, 0xfe, 0, b'\r', 0x1b, b'['];
    bytes.extend(std::iter::repeat_n(b"some progress 10%\r".as_slice(), 200_000).flatten());
    bytes.extend_from_slice(b"\nOSError: [Errno 28] No space left on device\n");
    let ended = Place::new().run(&["classify", "--exit-code", "1"], bytes);
    assert!(ended.stdout.starts_with("disk_full"), "{}", ended.stdout);
}

#[test]
fn invalid_input_is_reported_with_exit_code_2() {
    let place = Place::new();
    let mut told = String::new();
    for args in [
        &["gone.txt"][..],
        &["--status", "7"],
        &["--signal", "SIGNOPE"],
        &["--header", "x"],
        &["--now", "yesterday"],
        &["--json", "--jsonl"],
    ] {
        let ended = place.run(&[&["classify"], args].concat(), "x");
        assert_eq!(ended.code, 2, "{args:?}");
        told += &format!("{args:?}\n{}\n", ended.stderr);
    }
    assert_output!(place, told);
}

#[test]
fn colors_are_for_terminals_unless_requested() {
    let place = Place::new();
    let run = |color: &[&str]| {
        place
            .run(
                &[&["classify", "--exit-code", "1"], color].concat(),
                "Killed",
            )
            .stdout
    };
    assert!(!run(&[]).contains('\u{1b}'));
    assert!(run(&["--color", "always"]).contains("\u{1b}["));
}

#[test]
fn agent_flag_marks_an_agent_process_failure() {
    let place = Place::new();
    let level = |args: &[&str]| {
        place.json(
            &[&["classify", "--json", "--exit-code", "124"], args].concat(),
            "working",
        )["level"]
            .clone()
    };
    assert_eq!(level(&["--agent", "claude"]), "alternative");
    assert_eq!(level(&["--tool", "make"]), "same");
}
