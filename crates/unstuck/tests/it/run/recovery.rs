//! Tests of the recovery of failed roles, and of what is printed and stored about it.

use serde_json::json;

use super::{configure, project, role};
use crate::Place;
use crate::output_snapshot::assert_output;

/// Saves the prompt of each attempt and records the role that ran.
pub(super) const KEEP: &str =
    "cat > got-$UNSTUCK_ROLE-$UNSTUCK_ATTEMPT; echo $UNSTUCK_ROLE >> ran;";

/// Returns an agent that succeeds from its second attempt on and runs a script before.
fn second_time(at_first: &str) -> String {
    format!("{KEEP} [ $UNSTUCK_ATTEMPT -ge 2 ] && echo fine && exit 0; {at_first}")
}

/// S1-36, S1-30, S1-26: example 1, a timeout of 1200 s becomes 1800 s, with a simpler prompt.
#[test]
fn timed_out_role_gets_half_as_much_more_time_and_a_simpler_prompt() {
    let more = "prompt = \"Build the shop.\"\ntimeout = \"1200s\"";
    let place = project(&role("implementer", more, &second_time("exit 124")));
    let ended = place.run(&["run"], "");
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.text("got-implementer-1"), "Build the shop.");
    let simpler = place.text("got-implementer-2");
    assert!(simpler.contains("timed out") && simpler.ends_with("Build the shop."));
    let tries = place.events("attempt_started");
    let allowed: Vec<_> = tries.iter().map(|one| &one["timeout_ms"]).collect();
    assert_eq!(allowed, [&json!(1_200_000), &json!(1_800_000)]);
}

/// S1-36: a role that really takes too long is stopped, and none of its processes is left.
#[test]
fn role_that_takes_too_long_is_stopped() {
    let more = "prompt = \"Build the shop.\"\ntimeout = \"1s\"";
    let script = second_time("echo $$ > pid; sleep 60");
    let place = project(&role("implementer", more, &script));
    let ended = place.run(&["run"], "");
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    let pid = place.text("pid");
    let process = format!("/proc/{}", pid.trim());
    assert!(
        !std::path::Path::new(&process).exists(),
        "{process} is left"
    );
}

/// S1-37, S1-42: example 2, the missing sections are named in the next prompt.
#[test]
fn missing_sections_are_named_in_the_next_prompt() {
    let more = "prompt = \"Review it.\"\nexpect.sections = [\"# Review\", \"- Findings:\"]";
    let script = format!(
        "{KEEP} [ $UNSTUCK_ATTEMPT -ge 2 ] && printf '# Review\\n- Findings: none\\n' && exit 0; echo looks good"
    );
    let place = project(&role("reviewer", more, &script));
    let ended = place.run(&["run"], "");
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    let next = place.text("got-reviewer-2");
    for part in ["# Review", "- Findings:", "Review it."] {
        assert!(next.contains(part), "{part} in {next}");
    }
    let failed = &place.events("attempt_failed")[0];
    assert_eq!(
        failed["validation_errors"].as_array().unwrap().len(),
        2,
        "{failed}"
    );
}

/// S1-26: additions to a prompt do not accumulate.
#[test]
fn prompt_changes_do_not_accumulate() {
    let more = "prompt = \"Review it.\"\nexpect.sections = [\"# Review\"]";
    let place = project(&role("reviewer", more, &format!("{KEEP} echo looks good")));
    assert_output!(place, place.run(&["run"], "").told(3, &[]).stderr);
    let last = place.text("got-reviewer-4");
    assert_eq!(last.matches("<unstuck-note>").count(), 1, "{last}");
    assert_eq!(last.matches("Review it.").count(), 1, "{last}");
}

/// S1-25, S1-42: a failed output check is described in the agent's next prompt.
#[test]
fn failed_check_is_described_to_the_agent() {
    let more = "prompt = \"Fix it.\"\nexpect.check = \"test -f made || { echo made is missing; exit 1; }\"";
    let script = format!("{KEEP} [ $UNSTUCK_ATTEMPT -ge 2 ] && touch made; echo done");
    let place = project(&role("fixer", more, &script));
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    let next = place.text("got-fixer-2");
    assert!(next.contains("made is missing"), "{next}");
}

/// S2-01: a strategy made of tool calls is described to the agent; if it did not help, the next one is.
#[test]
fn tool_call_strategies_are_described_to_the_agent_one_by_one() {
    let more = "prompt = \"Find it.\"\nexpect.check = \"[ -f ok ] || { echo 'bash: line 1: rg: command not found' >&2; exit 127; }\"";
    let script = format!("{KEEP} [ $UNSTUCK_ATTEMPT -ge 3 ] && touch ok; echo done");
    let place = project(&role("finder", more, &script));
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    let told = [place.text("got-finder-2"), place.text("got-finder-3")];
    for prompt in &told {
        assert!(prompt.contains("rg: command not found"), "{prompt}");
        assert!(prompt.contains("Suggested approach"), "{prompt}");
        assert!(prompt.trim_end().ends_with("Find it."), "{prompt}");
    }
    assert_ne!(told[0], told[1], "each of them is another way");
}

/// S1-25: JSON that does not match its schema is a failure, and the errors are reported.
#[test]
fn answer_that_does_not_match_its_schema_is_requested_again() {
    let more = "prompt = \"List them.\"\nexpect.json = \"list.json\"";
    let script = format!(
        "{KEEP} [ $UNSTUCK_ATTEMPT -ge 2 ] && echo '{{\"items\":[]}}' && exit 0; echo '{{\"items\":3}}'"
    );
    let place = project(&role("lister", more, &script));
    place.write(
        "list.json",
        r#"{"type":"object","properties":{"items":{"type":"array"}},"required":["items"]}"#,
    );
    let ended = place.run(&["run"], "");
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert!(
        place.text("got-lister-2").contains("items"),
        "{}",
        place.text("got-lister-2")
    );
}

/// S1-28, S0-18, S0-20: when recovery is exhausted, a checkpoint contains the failure and the number of attempts, and
/// the role counts its errors.
#[test]
fn unrecoverable_role_leaves_a_checkpoint_and_an_escalation() {
    let more = "prompt = \"Test it.\"";
    let place = project(&role(
        "tester",
        more,
        "cat >/dev/null; echo it did not go well; exit 1",
    ));
    let ended = place.run(&["run"], "");
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    let checkpoint = place.json_of_run("checkpoint.json");
    assert_eq!(checkpoint["failed_agent"], "tester");
    assert_eq!(checkpoint["retry_count"], 1);
    let session = &place.json_of_run("state.json")["sessions"][0];
    assert_eq!(
        (&session["error_count"], &session["is_hiccup"]),
        (&json!(2), &json!(true))
    );
    let escalation = place.json_of_run("escalation.json");
    assert_eq!(escalation["trigger"], "HICCUP");
}

/// S1-28: no checkpoint is written if disabled.
#[test]
fn checkpoints_can_be_disabled() {
    let roles = role("tester", "prompt = \"Test it.\"", "cat >/dev/null; exit 9");
    let place = project(&format!(
        "[error_recovery]\nsave_checkpoint_on_failure = false\n{roles}"
    ));
    place.run(&["run"], "").told(3, &[]);
    let run = std::fs::read_dir(place.project().join(".unstuck/runs"))
        .unwrap()
        .next();
    assert!(
        !run.unwrap()
            .unwrap()
            .path()
            .join("checkpoint.json")
            .exists()
    );
}

/// S0-21, S0-19: the result of a run is one object; each role has its own outcome, attempts and level.
#[test]
fn result_is_one_object() {
    let place = project(&role(
        "a",
        "prompt = \"Do it.\"",
        &second_time("echo '503 Service Unavailable' >&2; exit 1"),
    ));
    let ended = place.run(&["run", "-q", "--json"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["outcome"], "recovered");
    assert_eq!(result["success"], true);
    for part in ["cost_usd", "duration_ms", "reason"] {
        assert!(!result[part].is_null(), "{part} in {result}");
    }
    let end = &place.events("session_finished")[0];
    assert_eq!(
        (&end["attempts"], &end["recovery_level"]),
        (&json!(2), &json!("same"))
    );
}

/// S1-33: a role's own number of retries may exceed the cap, and its own prompt is used.
#[test]
fn role_may_have_its_own_limits_and_prompt() {
    let more = "prompt = \"Build it.\"\n[role.error_recovery.timeout]\nmax_retries = 5\ncustom_prompt_modifier = \"hurry\"";
    let roles = role("implementer", more, &format!("{KEEP} exit 124"));
    let place = project(&format!(
        "[error_recovery]\nmax_auto_retries = 1\n[prompts]\nhurry = \"Only the checkout page.\"\n{roles}"
    ));
    let ended = place.run(&["run"], "");
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    let next = place.text("got-implementer-2");
    assert!(next.contains("Only the checkout page."), "{next}");
}

/// S1-32: without recovery each role has one attempt.
#[test]
fn recovery_can_be_disabled() {
    let roles = role(
        "a",
        "prompt = \"Do it.\"",
        &format!("{KEEP} echo '503 Service Unavailable' >&2; exit 7"),
    );
    let place = project(&format!("[error_recovery]\nenabled = false\n{roles}"));
    let ended = place.run(&["run"], "");
    assert_eq!(
        (ended.code, place.lines("ran").len()),
        (1, 1),
        "{}",
        ended.stderr
    );
}

/// S1-34: roles run in dependency order, whatever their order in the file.
#[test]
fn roles_run_in_dependency_order() {
    let script = format!("{KEEP} echo by $UNSTUCK_ROLE");
    let needing = |id: &str, needed: &str| {
        let more = format!("prompt = \"After {{{{ outputs.{needed} }}}}\"\nneeds = [\"{needed}\"]");
        role(id, &more, &script)
    };
    let place = project(
        &[
            needing("reviewer", "tester"),
            needing("tester", "implementer"),
            needing("implementer", "architect"),
            role("architect", "prompt = \"Plan it.\"", &script),
        ]
        .concat(),
    );
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    assert_eq!(
        place.lines("ran"),
        ["architect", "implementer", "tester", "reviewer"]
    );
    assert_eq!(place.text("got-reviewer-1").trim(), "After by tester");
}

/// S1-34: independent roles run in parallel, up to the limit.
#[test]
fn independent_roles_run_in_parallel() {
    // Each waits until the other has started, too.
    let script = "cat >/dev/null; touch here-$UNSTUCK_ROLE; while [ ! -f here-a ] || [ ! -f here-b ]; do sleep 0.01; done; echo met";
    let more = "prompt = \"Meet.\"\ntimeout = \"20s\"";
    let place = project(&[role("a", more, script), role("b", more, script)].concat());
    place
        .run(&["run"], "")
        .told(0, &["Done: 2 roles, 2 attempts"]);
    let alone = "cat >/dev/null; mkdir lock || exit 9; rmdir lock; echo alone";
    configure(
        &place,
        &[role("a", more, alone), role("b", more, alone)].concat(),
    );
    let ended = place.run(&["run", "--parallel", "1"], "");
    ended.told(0, &["Done: 2 roles, 2 attempts"]);
}

/// S3-51: without a `[recovery]` section nothing is repaired or proposed, and prompts stay unchanged.
#[test]
fn nothing_is_repaired_without_a_recovery_section() {
    let script = second_time(
        "echo '{\"commands\":[\"touch repaired\"]}' > recovery.json; echo 'error: the lock file Cargo.lock needs to be updated but --locked was passed' >&2; exit 1",
    );
    let place = project(&role("a", "prompt = \"Build it.\"", &script));
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    assert!(!place.project().join("repaired").exists());
    assert_eq!(place.text("got-a-1"), "Build it.");
    assert!(!place.text("got-a-2").contains("recovery.json"));
    assert!(place.events("recovery_escalated").is_empty());
}

/// S0-19, S1-35: the output of each role is in its own file for each attempt.
#[test]
fn each_role_has_its_prompt_and_output_in_files() {
    let place = project(&role(
        "a",
        "prompt = \"Say it.\"",
        "echo said; echo aside >&2",
    ));
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    assert_eq!(place.of_run("roles/a/prompt.md").trim_end(), "Say it.");
    assert_eq!(place.of_run("roles/a/output.md"), "said\n");
    assert_eq!(
        place.of_run("roles/a/iteration-1/attempt-1/stderr.log"),
        "aside\n"
    );
}

/// A secret of the environment does not reach outputs, prompts or events.
#[test]
fn secrets_do_not_reach_the_files() {
    let place = project(
        &[
            role(
                "a",
                "prompt = \"Say it.\"",
                "cat >/dev/null; echo key is $SHOP_API_KEY",
            ),
            role("b", "prompt = \"{{ outputs.a }}\"\nneeds = [\"a\"]", "cat"),
        ]
        .concat(),
    );
    let mut command = place.command(&["run"]);
    command.env("SHOP_API_KEY", "sk-shop-9f8e7d6c5b4a39281706");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    for file in ["roles/a/output.md", "roles/b/prompt.md", "events.jsonl"] {
        assert!(
            !place.of_run(file).contains("9f8e7d6c5b4a"),
            "{file}: {}",
            place.of_run(file)
        );
    }
}

#[test]
fn quiet_prints_nothing_and_verbose_prints_agent_output() {
    let config = role("a", "prompt = \"Say it.\"", "cat >/dev/null; echo said");
    let place = project(&config);
    let quiet = place.run(&["run", "-q"], "");
    assert_eq!(
        (quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()),
        (0, "", "")
    );
    let place: Place = project(&config);
    assert_output!(place, place.run(&["run", "-v"], "").told(0, &[]).stderr);
}
