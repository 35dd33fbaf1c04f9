//! Tests of agents that loop, wait for input or spend too much.

use super::{Running, configure, project, role};
use crate::Place;
use crate::output_snapshot::assert_output;

/// Returns an agent that runs a script in its first attempt and succeeds in the second.
fn until_second(at_first: &str) -> String {
    format!(
        "cat > got-$UNSTUCK_ATTEMPT; [ $UNSTUCK_ATTEMPT -ge 2 ] && echo 'All is done.' && exit 0; {at_first}"
    )
}

fn watched(settings: &str, script: &str) -> Place {
    let more = "prompt = \"Do it.\"\ntimeout = \"20s\"";
    project(&format!("[stuck]\n{settings}\n{}", role("a", more, script)))
}

/// Repeated output is stopped long before any timeout, and the next prompt asks for another approach.
#[test]
fn repeating_agent_is_stopped_and_told() {
    let script = until_second(
        "while :; do echo 'Error: cannot open the display, I will look at it from the beginning'; done",
    );
    let place = watched("output_repeats = 5", &script);
    let ended = place.run(&["run"], "");
    ended.told(
        0,
        &[
            "[Attempt 1] a → stuck",
            "cannot open the display",
            "[Attempt 2] a → success",
        ],
    );
    let next = place.text("got-2");
    assert!(
        next.contains("Do it.") && next.contains("cannot open the display"),
        "{next}"
    );
}

/// An agent that waits for input is stopped and told to continue without it.
#[test]
fn agent_waiting_for_input_is_stopped() {
    let place = watched(
        "waiting_for_input = \"100ms\"",
        &until_second("printf 'Overwrite the file? [y/N] '; sleep 60"),
    );
    let ended = place.run(&["run"], "");
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
}

#[test]
fn answer_that_is_only_a_question_is_a_failure() {
    let script = until_second("echo 'There are two databases. Which one should I use?'");
    let place = watched("", &script);
    let ended = place.run(&["run"], "");
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    let next = place.text("got-2");
    assert!(next.contains("Which one should I use?"), "{next}");

    let place = watched("enabled = false", &script);
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
}

/// An agent that stays stuck leads to an escalation with its repeated output.
#[test]
fn agent_that_stays_stuck_leads_to_an_escalation() {
    let place = watched(
        "",
        "cat >/dev/null; echo 'Shall I begin with the shop or with the blog?'",
    );
    let ended = place.run(&["run"], "");
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    let escalation = place.json_of_run("escalation.json");
    assert_eq!(
        (&escalation["type"], &escalation["trigger"]),
        (&"stuck".into(), &"STUCK".into())
    );
}

/// Returns the output of a fake Claude Code: its calls, then its answer with the cost.
fn claude(calls: &str) -> String {
    format!(
        "#!/bin/sh\ncat >/dev/null; echo ran >> ran\n{calls}\necho '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":\"All is done.\",\"session_id\":\"11-22\",\"total_cost_usd\":0.3,\"usage\":{{\"input_tokens\":100,\"output_tokens\":50}}}}'\n"
    )
}

fn claude_role(id: &str, needs: &str) -> String {
    format!("[[role]]\nid = \"{id}\"\nagent = \"claude\"\nprompt = \"Do it.\"\nneeds = [{needs}]\n")
}

/// A repeated failing call is detected in the agent's output while it runs.
#[test]
fn repeated_failing_call_is_a_loop() {
    let calls = r#"[ -f again ] || { touch again; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t'$n'","name":"Bash","input":{"command":"npm test"}}]}}'
echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t'$n'","is_error":true,"content":"sh: jest: not found"}]}}'
done; sleep 60; }"#;
    let place = project(&claude_role("a", ""));
    place.tool("claude", &claude(calls));
    let ended = place.run(&["run"], "");
    ended.told(
        0,
        &[
            "[Attempt 1] a → stuck",
            "npm test",
            "[Attempt 2] a → success",
        ],
    );
}

/// Returns the id of a pending escalation.
fn waiting(place: &Place) -> String {
    let open = place.json(&["inbox", "--json"], "");
    open[0]["id"].as_str().unwrap().to_owned()
}

/// When the budget of a run is used up, approval is required to spend more. Resume, restart and retry do not raise the
/// budget (W1); the answer does.
#[test]
fn exhausted_budget_leads_to_an_escalation() {
    let roles = [
        claude_role("a", ""),
        claude_role("b", "\"a\""),
        claude_role("c", "\"b\""),
        claude_role("d", "\"c\""),
    ];
    let place = project(&format!("[budget]\nper_run.usd = 0.5\n{}", roles.concat()));
    place.tool("claude", &claude(""));
    let ended = place.run(&["run"], "");
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.lines("ran").len(), 2);
    assert_eq!(
        place.json_of_run("escalation.json")["type"],
        "cost_confirmation"
    );

    let question = waiting(&place);
    for args in [
        &["resume"][..],
        &["resume", "--restart", "c"],
        &["run", "--resume-from-failure"],
        &["retry", &question, "--say", "cheaper"],
        &["retry", &question[..10], "--context"],
    ] {
        assert_output!(place, place.run(args, "").told(1, &[]).stderr);
    }
    assert_eq!(place.lines("ran").len(), 2, "nothing was spent");
    assert_eq!(waiting(&place), question, "and nothing was answered");
    assert_output!(
        place,
        place.run(&["approve", &question], "").told(0, &[]).stderr
    );
    assert_eq!(place.lines("ran").len(), 4);
    let answers = place.events("recovery_resolved");
    let approval = answers.iter().find(|one| one["method"] == "approve");
    assert!(approval.unwrap()["user"].is_string(), "{answers:?}");
}

#[test]
fn tokens_can_be_limited() {
    let roles = [claude_role("a", ""), claude_role("b", "\"a\"")];
    let place = project(&format!(
        "[budget]\nper_run.tokens = 100\n{}",
        roles.concat()
    ));
    place.tool("claude", &claude(""));
    assert_output!(place, place.run(&["run"], "").told(3, &[]).stderr);
}

/// Usage of other runs on the same day counts toward the daily budget.
#[test]
fn daily_budget_includes_all_runs() {
    let place = project(&format!(
        "[budget]\nper_day.usd = 0.2\n{}",
        claude_role("a", "")
    ));
    place.tool("claude", &claude(""));
    place.run(&["run"], "").told(0, &[]);
    assert_output!(place, place.run(&["run"], "").told(3, &[]).stderr);
    assert_eq!(place.lines("ran").len(), 1);
}

/// One approval applies once, although several roles stopped because of the budget.
#[test]
fn several_roles_stopped_by_the_budget_share_one_escalation() {
    let roles = [
        claude_role("a", ""),
        claude_role("b", ""),
        claude_role("c", "\"a\", \"b\""),
        claude_role("d", "\"a\", \"b\""),
        claude_role("e", "\"c\", \"d\""),
    ];
    let place = project(&format!("[budget]\nper_run.usd = 0.5\n{}", roles.concat()));
    place.tool("claude", &claude(""));
    place.run(&["run"], "").told(3, &["$0.60 of $0.50"]);
    place
        .run(&["approve", &waiting(&place)], "")
        .told(3, &["Starting: c, d", "$1.20 of $1.10"]);
    assert_eq!(place.lines("ran").len(), 4);
    place
        .run(&["approve", &waiting(&place)], "")
        .told(0, &["$1.50"]);
}

/// A process that waits for approval of more budget asks once.
#[test]
fn waiting_run_continues_when_more_budget_is_approved() {
    let roles = [claude_role("a", ""), claude_role("b", "\"a\"")];
    let place = project(&format!("[budget]\nper_run.usd = 0.2\n{}", roles.concat()));
    place.tool("claude", &claude(""));
    let mut running = Running::start(&place, &["run", "--wait"]);
    running.until("waiting for you to fix this");
    place.run(&["resume"], "").told(1, &["needs your input"]);
    place.run(&["approve", &waiting(&place)], "").told(0, &[]);
    running.until("b → ");
    running.end().told(0, &["$0.60"]);
}

/// A budget raised in the project's file while a run is stopped is ignored; a lowered one applies to the resumed run.
#[test]
fn budget_raised_in_the_file_is_ignored_by_a_resumed_run() {
    for changed in ["50", "0.2"] {
        let roles = [
            claude_role("a", ""),
            claude_role("b", "\"a\""),
            claude_role("c", "\"b\""),
        ];
        let with_budget = |usd: &str| format!("[budget]\nper_run.usd = {usd}\n{}", roles.concat());
        let place = project(&with_budget("0.5"));
        let hangs = "[ $UNSTUCK_ROLE = b ] && [ ! -e go ] && { echo ready >&2; sleep 60; }";
        place.tool("claude", &claude(hangs));
        let mut running = Running::start(&place, &["run", "-v"]);
        running.until("ready");
        running.interrupt();
        running.end();
        place.write("go", "");
        configure(&place, &with_budget(changed));
        if changed == "50" {
            assert_output!(place, place.run(&["resume"], "").told(1, &[]).stderr);
        }
        let ended = place.run(&["resume", "--accept-changes"], "");
        ended.told(3, &[]);
        assert_output!(place, ended.stderr);
    }
}
