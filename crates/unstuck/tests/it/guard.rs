//! `unstuck guard`: checks if a repair may run.

use serde_json::{Value, json};

use crate::Place;
use crate::output_snapshot::assert_output;

const CONFIG: &str = r#"[recovery]
auto_approve = ["npm ci", "rm -rf node_modules && npm ci", "rm -f x || true"]
require_human = ["git push", "curl *"]
"#;

fn place() -> Place {
    let place = Place::new();
    place.write("unstuck.toml", CONFIG);
    place.write("packages/web/x", "");
    place.write(".git/hooks/x", "");
    place
}

/// The same, trusted by its owner.
fn trusted() -> Place {
    let place = place();
    let ended = place.run(&["trust"], "");
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    place
}

/// Returns a `--jsonl` line; the documents contain no characters that need other escaping.
fn line(id: &str, document: &str, config: Value) -> String {
    let document_base64 = base64(document.as_bytes());
    json!({ "id": id, "document_base64": document_base64, "config": config }).to_string()
}

fn base64(bytes: &[u8]) -> String {
    data_encoding::BASE64.encode(bytes)
}

fn document(command: &str) -> Value {
    json!({
        "version": 1, "timestamp": "2026-01-23T05:36:33Z", "category": "dependency", "severity": "blocking",
        "diagnosis": { "error_pattern": "x", "root_cause": "x", "evidence": [] },
        "recovery": { "command": command, "expected_outcome": "x", "confidence": "high" },
    })
}

/// S3-02, S3-17, S3-54: the exit code reports the verdict too.
#[test]
fn exit_code_reports_the_verdict() {
    let place = trusted();
    let mut told = String::new();
    for (arguments, code) in [
        (&["npm ci"][..], 0),
        (&[" npm ci\n"], 0),
        (&["npm ci", "--working-dir", "packages/web"], 0),
        (&["npm ci --force"], 3),
        (&["git push -f"], 3),
        (&["npm ci", "--working-dir", ".git/hooks"], 3),
        (&["npm\u{202e}ci"], 1),
        (&[""], 1),
        (&["npm ci", "--working-dir", ".."], 1),
        (&["npm ci", "--working-dir", "nowhere"], 1),
    ] {
        let ended = place.run(&[&["guard", "check"], arguments].concat(), "");
        assert_eq!(
            ended.code, code,
            "{arguments:?}\n{}{}",
            ended.stdout, ended.stderr
        );
        told += &format!("{arguments:?}\n{}\n", ended.stdout);
    }
    assert_output!(place, told);
    place.write(
        "unstuck.toml",
        "[recovery]\nenabled = false\nauto_approve = [\"npm ci\"]\n",
    );
    let ended = place.run(&["guard", "check", "npm ci"], "");
    assert_eq!(ended.code, 1, "{}", ended.stdout);
    assert_output!(place, ended.stdout);
}

#[test]
fn every_step_is_explained() {
    let owned = trusted();
    let shown = owned.run(&["guard", "check", "rm -rf node_modules && npm ci"], "");
    assert_output!(owned, shown.stdout);
    let place = place();
    let shown = place.run(&["guard", "check", "n\u{440}m ci"], "");
    assert_output!(place, shown.stdout);
}

#[test]
fn json_output_has_the_same_content() {
    let place = trusted();
    let told = place.json(
        &[
            "guard",
            "check",
            "rm -rf node_modules && npm ci",
            "--working-dir",
            "packages/web",
            "--json",
        ],
        "",
    );
    assert_eq!(told["verdict"], "run");
    assert_eq!(told["directory"], "packages/web");
    assert_eq!(
        told["execution"],
        json!({ "argv": [["rm", "-rf", "node_modules"], ["npm", "ci"]] })
    );
    assert_eq!(told["steps"][3]["effect"], "approves");
    let told = place.json(&["guard", "check", "rm -f x || true", "--json"], "");
    assert_eq!(told["execution"], json!({ "shell": "rm -f x || true" }));
    let ended = place.run(&["guard", "check", "git push -f", "--json"], "");
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(ended.code, 3);
    assert_eq!(
        told["approval_reason"],
        json!([{ "require_human": "git push" }])
    );
    assert_eq!(told["execution"], Value::Null);
}

/// Approvals in a project's file do not apply until its owner has trusted it, and the reason says so.
#[test]
fn untrusted_approval_needs_approval() {
    let place = place();
    let ended = place.run(&["guard", "check", "npm ci"], "");
    assert_eq!(ended.code, 3, "{}", ended.stdout);
    assert_output!(place, ended.stdout);
}

/// S3-51: without a section nothing is approved, and the output says so.
#[test]
fn everything_needs_approval_without_a_section() {
    let place = Place::new();
    let ended = place.run(&["guard", "check", "npm ci"], "");
    assert_eq!(ended.code, 3, "{}", ended.stdout);
    assert_output!(place, ended.stdout);
}

/// S3-02, S3-06, S3-15, S3-19: one verdict per line, with errors in the place of the line.
#[test]
fn proposals_are_evaluated_line_by_line() {
    let place = place();
    let config = json!({ "auto_approve": ["npm ci"], "require_human": [] });
    let mut with_fallback = document("npm ci");
    with_fallback["fallback"] = json!({ "command": "npm ci; id", "confidence": "low" });
    let mut late: Value = serde_json::from_str(&line(
        "late",
        &document("npm ci").to_string(),
        config.clone(),
    ))
    .unwrap();
    late["state"] = json!({ "auto_recoveries_this_run": 3 });
    let lines = [
        line("run", &document("npm ci").to_string(), config.clone()),
        line("ask", &document("npm install").to_string(), config.clone()),
        line("both", &with_fallback.to_string(), config.clone()),
        line("reject", "{}", config.clone()),
        line(
            "invalid",
            &document("npm ci").to_string(),
            json!({ "auto_approve": "npm ci" }),
        ),
        line("none", &document("npm ci").to_string(), Value::Null),
        late.to_string(),
        r#"{"id": "odd", "document_base64": "?"}"#.to_owned(),
        "not JSON".to_owned(),
    ];
    let project = place.project();
    let ended = place.run(
        &["guard", "--jsonl", "--root", project.to_str().unwrap()],
        lines.join("\n"),
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let answers: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let verdict = |at: usize| (answers[at]["id"].as_str(), answers[at]["verdict"].as_str());
    assert_eq!(verdict(0), (Some("run"), Some("run")));
    assert_eq!(verdict(1), (Some("ask"), Some("ask")));
    assert_eq!(verdict(2), (Some("both"), Some("run")));
    assert_eq!(answers[2]["fallback_verdict"], "ask");
    assert_eq!(answers[0].get("fallback_verdict"), None);
    assert_eq!(verdict(3), (Some("reject"), Some("reject_proposal")));
    assert_eq!(verdict(4), (Some("invalid"), Some("ask")));
    assert!(
        answers[4]["reason"]
            .as_str()
            .unwrap()
            .starts_with("[recovery] is ignored: ")
    );
    assert_eq!(verdict(5), (Some("none"), Some("ask")));
    assert_eq!(verdict(6), (Some("late"), Some("ask")));
    assert_eq!(
        answers[7]["error"]
            .as_str()
            .map(|told| told.contains("Base64")),
        Some(true)
    );
    assert_eq!(answers[8]["line"], 9);
    assert_eq!(answers.len(), 9);
}

/// S3-51: an invalid section in a project's own file is an error; nothing is evaluated.
#[test]
fn unreadable_configuration_gives_no_verdict() {
    let place = Place::new();
    place.write("unstuck.toml", "[recovery]\nauto_approve = \"npm ci\"\n");
    let ended = place.run(&["guard", "check", "npm ci"], "");
    assert_eq!(ended.code, 2, "{}", ended.stdout);
    assert_output!(place, ended.stderr);
}
