//! Agents: their prompt, their model and their conversation can be changed.

use crate::Place;

use super::{QUICK, events, executions};

/// S0-36, S1-37, S1-42, S4-09: a missing section is a failure too, and is mended by a changed prompt.
#[test]
fn a_missing_section_is_mended_by_a_changed_prompt() {
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
    assert!(
        ended.stderr.contains("missing_sections"),
        "{}",
        ended.stderr
    );
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
fn a_prompt_on_standard_input_is_changed_too() {
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
fn an_agent_that_says_nothing_has_failed_though_its_exit_code_is_0() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; [ $(wc -l < count) -ge 2 ] && echo an answer\nexit 0\n",
    );
    let ended = place.run(&["exec", "--", "claude", "-p", "x"], "");
    assert_eq!((ended.code, executions(&place)), (0, 2), "{}", ended.stderr);
    assert!(ended.stderr.contains("empty_output"), "{}", ended.stderr);
}

/// Some agents end well, in JSON and by their exit code, with an answer that tells of a failure.
#[test]
fn an_answer_that_is_a_failure_is_seen_in_json_too() {
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
    assert!(ended.stderr.contains("rate_limit"), "{}", ended.stderr);
}

/// After a usage limit the same conversation goes on, when the limit says it is over.
#[test]
fn a_usage_limit_is_waited_for_and_the_conversation_goes_on() {
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

/// S0-35: where the policy allows it, the next model of the ladder is used, and its cost is told.
#[test]
fn the_model_is_escalated_where_the_policy_allows_it() {
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
    assert!(
        ended
            .stderr
            .contains("model claude-haiku-5-5 → claude-sonnet-5-5"),
        "{}",
        ended.stderr
    );
    assert!(events(&place).contains(&"model_escalated".to_owned()));
}

#[test]
fn a_check_that_fails_sends_the_agent_back() {
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
    assert!(ended.stderr.contains("test -f ok"), "{}", ended.stderr);
}

#[test]
fn a_failed_check_is_told_to_the_agent_as_what_it_is() {
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
    assert!(
        ended.stderr.contains("Retry with the error message"),
        "{}",
        ended.stderr
    );
}

/// S0-06, S0-13: an agent that is not installed needs a person at once.
#[test]
fn an_agent_that_is_not_installed_asks_at_once() {
    let place = Place::new();
    let ended = place.run(&["exec", "--", "codex", "exec", "x"], "");
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("cli_not_found"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("attempt 2"), "{}", ended.stderr);
}

/// S1-07: what should be a diff and is none.
#[test]
fn what_is_expected_is_checked_and_named() {
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
