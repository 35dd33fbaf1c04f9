//! Output destinations: failed writes, the line of `--json`, the file of `--output`.

use serde_json::Value;

use crate::output_snapshot::assert_output;
use crate::{Ended, Place};

use super::QUICK;

/// Runs a line for `sh` in a place to its end.
fn shell(place: &Place, line: &str) -> Ended {
    let output = place.shell(line).output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn last_line(text: &str) -> Value {
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn only_run(place: &Place) -> Value {
    let runs = place.json(&["runs", "--json"], "");
    assert_eq!(runs.as_array().unwrap().len(), 1);
    runs[0].clone()
}

#[test]
fn unwritable_output_is_a_failure() {
    for (command, flags) in [
        ("seq 100000", ""),
        ("echo short", ""),
        ("echo short", "--quiet"),
    ] {
        let place = Place::new();
        let ended = shell(
            &place,
            &format!("\"$UNSTUCK\" exec {flags} -- {command} >/dev/full"),
        );
        ended.told(
            1,
            &["cannot write to standard output: No space left on device"],
        );
        let run = only_run(&place);
        assert_eq!(run["status"], "interrupted", "{run}");
        assert_eq!(place.events("attempt_interrupted")[0]["by"], "output");
    }
}

#[test]
fn lost_stderr_lets_the_work_end_as_a_failure() {
    let place = Place::new();
    let ended = shell(
        &place,
        "\"$UNSTUCK\" exec -- sh -c 'echo lost >&2; echo done' 2>/dev/full",
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (1, "done\n"));
    assert_eq!(
        place.events("run_finished")[0]["reason"],
        "cannot write to standard error: No space left on device (os error 28)"
    );
}

#[test]
fn json_has_its_own_line_with_the_exit_status() {
    let place = Place::new();
    let ended = place.run(&["exec", "--json", "--", "printf", "x"], "");
    assert_eq!(ended.stdout.lines().next(), Some("x"));
    let told = last_line(&ended.stdout);
    assert_eq!(
        (&told["success"], &told["exit_code"]),
        (&true.into(), &0.into())
    );
    assert_eq!(
        told["child"],
        serde_json::json!({"exit_code": 0, "signal": null})
    );

    let ended = place.run(&["exec", "--json", "--", "echo", "x"], "");
    assert_eq!(ended.stdout.lines().count(), 2, "{}", ended.stdout);

    let killed = [
        "exec",
        "--json",
        "--policy",
        "off",
        "--",
        "sh",
        "-c",
        "kill -9 $$",
    ];
    let ended = place.run(&killed, "");
    let told = last_line(&ended.stdout);
    assert_eq!((ended.code, &told["exit_code"]), (137, &137.into()));
    assert_eq!(
        told["child"],
        serde_json::json!({"exit_code": null, "signal": 9})
    );
}

#[test]
fn json_can_be_written_to_a_file() {
    let place = Place::new();
    let ended = place.run(&["exec", "--json=end.json", "--", "printf", "x"], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "x"));
    assert_eq!(last_line(&place.text("end.json"))["outcome"], "succeeded");

    let ended = place.run(&["exec", "--json=none/end.json", "--", "touch", "ran"], "");
    ended.told(2, &[]);
    assert_output!(place, ended.stderr);
    assert!(!place.project().join("ran").exists());
}

#[test]
fn failure_is_kept_if_the_json_is_not_read() {
    let place = Place::new();
    let line = "{ \"$UNSTUCK\" exec --policy off --json -- sh -c 'exit 7'; echo $? >code; } | true";
    shell(&place, line);
    assert_eq!(place.text("code"), "7");
}

#[test]
fn output_file_contains_only_the_accepted_answer() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; n=$(wc -l < count)\n[ $n -ge 2 ] && echo '# Review'\necho answer $n\n",
    );
    let args = [
        "exec",
        "--expect-section",
        "# Review",
        "--output",
        "review.md",
        "--no-gateway",
    ];
    let ended = place.run(&[&args[..], &["--", "claude", "-p", "x"]].concat(), "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(place.text("review.md"), "# Review\nanswer 2");
    assert!(ended.stdout.contains("answer 1"), "{}", ended.stdout);
}

#[test]
fn failure_leaves_the_output_file_unchanged() {
    let place = Place::new();
    place.write("old.md", "before");
    for file in ["old.md", "new.md"] {
        let args = ["exec", "--policy", "off", "-o", file, "--"];
        let ended = place.run(
            &[&args[..], &["sh", "-c", "echo half; exit 1"]].concat(),
            "",
        );
        assert_eq!(ended.code, 1);
    }
    assert_eq!(place.text("old.md"), "before");
    let entries = std::fs::read_dir(place.project()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, [".unstuck", "old.md"]);
}

#[test]
fn answer_is_extracted_from_agent_json() {
    let place = Place::new();
    place.tool(
        "claude",
        "#!/bin/sh\necho '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"All is well.\",\"session_id\":\"s\"}'\n",
    );
    let args = ["exec", "--no-gateway", "-o", "answer", "--", "claude"];
    let ended = place.run(
        &[&args[..], &["-p", "x", "--output-format", "json"]].concat(),
        "",
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(place.text("answer"), "All is well.");
    assert!(ended.stdout.starts_with('{'));
}

#[test]
fn expected_json_is_extracted_from_its_surroundings() {
    let place = Place::new();
    let script = "printf 'Here it is:\\n```json\\n{\"a\": 1}\\n```\\nAnything else?\\n'";
    let args = ["exec", "--expect-json", "-o", "answer.json", "--"];
    let ended = place.run(&[&args[..], &["sh", "-c", script]].concat(), "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(place.text("answer.json"), "{\"a\": 1}");
}

#[test]
fn unwritable_output_file_is_a_failure() {
    let place = Place::new();
    let ended = place.run(&["exec", "-o", "/dev/full", "--", "echo", "x"], "");
    ended.told(1, &[]);
    assert_output!(place, ended.stderr);
}

#[test]
fn limit_of_zero_is_unlimited() {
    let place = Place::new();
    let args = ["exec", "--timeout", "0s", "--idle-timeout", "0s", "--"];
    let ended = place.run(
        &[&args[..], &["sh", "-c", "sleep 0.2; echo done"]].concat(),
        "",
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "done\n"));
}

/// The expected text may be anywhere in a long output.
#[test]
fn long_output_is_evaluated_as_a_whole() {
    let place = Place::new();
    place.write("unstuck.toml", super::QUICK);
    let much = "head -c 600000 /dev/zero | tr '\\0' x; echo";
    let script = format!("{much}; echo '# Review'; {much}");
    let args = [
        "exec",
        "--expect-section",
        "# Review",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let ended = place.run(&args, "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let missing = [
        "exec",
        "--expect-section",
        "# Tests",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let ended = place.run(&missing, "");
    assert_eq!(ended.code, 3);
    assert_output!(place, ended.stderr);
    let script = format!("echo '['; ({much}) | sed 's/^x*$/\"&\"/'; echo ']'");
    let ended = place.run(&["exec", "--expect-json", "--", "sh", "-c", &script], "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

/// An unknown price is null, not 0.
#[test]
fn unknown_cost_is_null() {
    let place = Place::new();
    let cost = |printed: &str| {
        place.tool("claude", &format!("#!/bin/sh\necho '{printed}'\n"));
        let args = [
            "exec",
            "--no-gateway",
            "--json",
            "--",
            "claude",
            "-p",
            "x",
            "--output-format",
            "json",
        ];
        let ended = place.run(&args, "");
        let summary = last_line(&ended.stdout);
        let listed = place.json(&["runs", "--json"], "")[0].clone();
        let shown = place.json(&["show", "--json"], "");
        (
            summary["cost_usd"].clone(),
            listed["cost_usd"].clone(),
            shown["cost_usd"].clone(),
        )
    };
    let null = || Value::Null;
    let untold = r#"{"type":"result","result":"ok","session_id":"1"}"#;
    assert_eq!(cost(untold), (null(), null(), null()));
    let tokens = r#"{"type":"result","result":"ok","session_id":"1","usage":{"input_tokens":9,"output_tokens":3}}"#;
    assert_eq!(cost(tokens), (null(), null(), null()));
    let told = r#"{"type":"result","result":"ok","session_id":"1","total_cost_usd":0.25}"#;
    assert_eq!(cost(told), (0.25.into(), 0.25.into(), 0.25.into()));
    let plain = place.run(&["exec", "--json", "--", "echo", "x"], "");
    assert_eq!(last_line(&plain.stdout)["cost_usd"], 0.0);
}
