//! Agents: their prompt, their model and their conversation can be changed.

use crate::Place;
use crate::output_snapshot::assert_output;

use super::{QUICK, events, executions};

/// S0-36, S1-37, S1-42, S4-09: a missing section is a failure too, and is fixed by a modified prompt.
#[test]
fn missing_section_is_fixed_by_a_modified_prompt() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; printf '%s\\n---\\n' \"$*\" >> prompts\ncase \"$*\" in *'MUST include'*) echo '# Review'; echo fine;; *) echo looks good;; esac\n",
    );
    let ended = place.run(
        &[
            "exec",
            "--expect-section",
            "# Review",
            "--",
            "claude",
            "-p",
            "Review the change",
        ],
        "",
    );
    assert_eq!((ended.code, executions(&place)), (0, 2), "{}", ended.stderr);
    assert_output!(place, ended.stderr);
    let run = place.json(&["show", "--json"], "");
    let diagnosis = &run["attempts"][0]["diagnosis"];
    assert_eq!(diagnosis["confidence"], 1.0, "unstuck has looked itself");
    let prompts = std::fs::read_to_string(place.project().join("prompts")).unwrap();
    let second = prompts.split("---\n").nth(1).unwrap();
    assert!(
        second.contains("# Review") && second.contains("Review the change"),
        "{second}"
    );
}

#[test]
fn prompt_on_stdin_is_modified_too() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; p=$(cat); case \"$p\" in *'MUST include'*'Review it'*) echo '# Review';; *) echo no;; esac\n",
    );
    let ended = place.run(
        &["exec", "--expect-section", "# Review", "--", "claude", "-p"],
        "Review it",
    );
    assert_eq!((ended.code, executions(&place)), (0, 2), "{}", ended.stderr);
}

#[test]
fn agent_without_output_fails_despite_exit_code_0() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; [ $(wc -l < count) -ge 2 ] && echo an answer\nexit 0\n",
    );
    let ended = place.run(&["exec", "--", "claude", "-p", "x"], "");
    assert_eq!((ended.code, executions(&place)), (0, 2), "{}", ended.stderr);
    assert_output!(place, ended.stderr);
}

/// Some agents succeed by exit code and JSON, with an answer that reports a failure.
#[test]
fn failure_in_a_json_answer_is_detected() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "goose",
        r#"#!/bin/sh
echo x >> count
say() { printf '{"type":"message","message":{"id":"%s","role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' "$1" "$2"; }
say m1 "Let me look."
[ $(wc -l < count) -ge 2 ] && say m2 "All done." || say m2 "Ran into this error: Rate limit exceeded: slow down."
echo '{"type":"complete","total_tokens":5}'
"#,
    );
    let line = [
        "goose",
        "run",
        "-q",
        "--output-format",
        "stream-json",
        "-i",
        "-",
    ];
    let ended = place.run(&[&["exec", "--"][..], &line].concat(), "fix it");
    assert_eq!((ended.code, executions(&place)), (0, 2), "{}", ended.stderr);
    assert_output!(place, ended.stderr);
}

/// Everything that an agent runs can print a line that looks like the agent's own.
#[test]
fn printed_conversation_id_never_becomes_an_option_of_the_agent() {
    let option = "--dangerously-bypass-approvals-and-sandbox";
    for (agent, mode, printed) in [
        ("codex", "exec", format!("session id: {option}")),
        (
            "claude",
            "-p",
            format!(r#"{{"type":"x","session_id":"{option}"}}"#),
        ),
    ] {
        let place = Place::new();
        place.write("unstuck.toml", QUICK);
        place.tool(
            agent,
            &format!(
                r#"#!/bin/sh
echo x >> count; echo "$*" | tr '\n' ' ' >> lines; echo >> lines
[ $(wc -l < count) -ge 2 ] && echo done && exit 0
echo '{printed}'; echo 'Segmentation fault (core dumped)' >&2; exit 139
"#
            ),
        );
        place
            .run(&["exec", "--", agent, mode, "do it"], "")
            .told(0, &[]);
        let lines = place.lines("lines");
        // The summary of the earlier output is text of the prompt.
        let words = lines[1].split("<unstuck-note>").next().unwrap();
        assert!(lines.len() == 2 && !words.contains(option), "{lines:?}");
    }
}

/// After a usage limit the same conversation continues when the limit resets.
#[test]
fn usage_limit_is_waited_out_and_the_conversation_continues() {
    let place = Place::new();
    place.tool(
        "claude",
        r#"#!/bin/sh
echo x >> count; echo "$*" >> lines
case "$*" in
*--resume*) echo '{"type":"result","subtype":"success","is_error":false,"result":"all done","session_id":"0b5a1f7e-1111-4222-8333-444455556666"}';;
*) echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":429,\"result\":\"Claude AI usage limit reached|$(($(date +%s)+2))\",\"session_id\":\"0b5a1f7e-1111-4222-8333-444455556666\"}"; exit 1;;
esac
"#,
    );
    let ended = place.run(
        &[
            "exec",
            "--",
            "claude",
            "-p",
            "--output-format",
            "json",
            "do the work",
        ],
        "",
    );
    assert_eq!((ended.code, executions(&place)), (0, 2), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("rate_limit_timed"),
        "{}",
        ended.stderr
    );
    assert!(events(&place).contains(&"waiting_until".to_owned()));
    let lines = std::fs::read_to_string(place.project().join("lines")).unwrap();
    let second = lines.lines().nth(1).unwrap();
    assert!(
        second.contains("--resume 0b5a1f7e-1111-4222-8333-444455556666"),
        "{second}"
    );
    let lines = lines.replace('\n', " ");
    assert!(lines.contains("ended before the task was done"), "{lines}");
    assert!(
        lines.contains("Finish the task now. It is: do the work"),
        "{lines}"
    );
}

/// S0-35: if the policy allows it, the next model of the ladder is used, and its cost is shown.
#[test]
fn model_is_switched_if_the_policy_allows_it() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\ntemplate = \"critical\"\njitter = \"none\"\nbackoffBase = 0.02\nescalateAfterRetries = 1\n",
    );
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; case \"$*\" in *opus*|*sonnet*) echo fine;; *) exit 0;; esac\n",
    );
    let ended = place.run(
        &[
            "exec",
            "--",
            "claude",
            "-p",
            "x",
            "--model",
            "claude-haiku-5-5",
        ],
        "",
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_output!(place, ended.stderr);
    assert!(events(&place).contains(&"model_escalated".to_owned()));
}

#[test]
fn failed_check_reruns_the_agent() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; [ $(wc -l < count) -ge 2 ] && touch ok\necho finished\n",
    );
    let ended = place.run(
        &[
            "exec",
            "--check",
            "test -f ok",
            "--",
            "claude",
            "-p",
            "make ok",
        ],
        "",
    );
    assert_eq!((ended.code, executions(&place)), (0, 2), "{}", ended.stderr);
    assert_output!(place, ended.stderr);
}

#[test]
fn failed_check_is_described_to_the_agent() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; case \"$*\" in *'expected 3 but got 4'*) touch ok;; esac\necho finished\n",
    );
    let check = "test -f ok || { echo 'expected 3 but got 4'; exit 1; }";
    let ended = place.run(
        &["exec", "--check", check, "--", "claude", "-p", "count"],
        "",
    );
    assert_eq!((ended.code, executions(&place)), (0, 2), "{}", ended.stderr);
    assert_output!(place, ended.stderr);
}

/// S0-06, S0-13: an agent that is not installed needs action at once.
#[test]
fn missing_agent_escalates_at_once() {
    let place = Place::new();
    let ended = place.run(&["exec", "--", "codex", "exec", "x"], "");
    assert_eq!(ended.code, 3);
    assert_output!(place, ended.stderr);
    assert!(!ended.stderr.contains("attempt 2"), "{}", ended.stderr);
}

/// S1-07: output that should be a diff and is not.
#[test]
fn expected_output_is_checked_and_named() {
    for (option, output, kind) in [
        ("--expect-diff", "hi", "diff_parse_error"),
        ("--expect-json", "hi", "json_parse_error"),
        ("--expect-match=^ok", "hi", "format_validation"),
        ("--expect-section=# A", "hi", "missing_sections"),
        ("--expect-json", "{\"a\": 1}", ""),
        ("--expect-match=^h", "hi", ""),
        ("--forbid-empty", "", "empty_output"),
    ] {
        let place = Place::new();
        let ended = place.run(
            &[
                "exec",
                "--retries",
                "0",
                option,
                "--",
                "printf",
                "%s",
                output,
            ],
            "",
        );
        assert!(
            ended.stderr.contains(kind),
            "{option} {output}: {}",
            ended.stderr
        );
        assert_eq!(
            ended.code == 0,
            kind.is_empty(),
            "{option}: {}",
            ended.stderr
        );
    }
}
