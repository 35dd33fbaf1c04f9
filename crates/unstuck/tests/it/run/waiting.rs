//! Waits between attempts: how long they are, that they can be stopped, and that they survive what happens meanwhile.

use rustix::process::Signal;
use serde_json::json;

use super::{Running, role};
use crate::Place;

/// A project whose waits are those that the pipeline's policy has by itself.
fn patient(config: &str) -> Place {
    let place = Place::new();
    place.write("unstuck.toml", config);
    place
}

/// S1-27: waits of a pipeline grow by the same step, by the kind's own multiplier.
#[test]
fn the_wait_is_the_multiplier_times_the_number_of_the_retry() {
    let place = patient(
        &[
            "[policy]\ntemplate = \"pipeline\"\n".to_owned(),
            role("slow", "prompt = \"A\"", "cat >/dev/null; exit 124"),
            role(
                "busy",
                "prompt = \"B\"",
                "cat >/dev/null; echo '503 Service Unavailable' >&2; exit 1",
            ),
        ]
        .concat(),
    );
    let mut running = Running::start(&place, &["run"]);
    running.until("[Auto-retry 1/");
    running.until("[Auto-retry 1/").signal(Signal::INT);
    running.end().told(130, &["Stopped"]);
    let waits: Vec<_> = place
        .events("decision_made")
        .iter()
        .map(|made| {
            (
                made["decision"]["kind"].clone(),
                made["decision"]["action"]["delay_ms"].clone(),
            )
        })
        .collect();
    assert_eq!(waits.len(), 2, "{waits:?}");
    assert!(
        waits.contains(&(json!("timeout"), json!(1500))),
        "{waits:?}"
    );
    assert!(
        waits.contains(&(json!("server_error"), json!(1000))),
        "{waits:?}"
    );
}

/// Ctrl-C in a wait stops at once, and the wait goes on where it was.
#[test]
fn a_wait_can_be_interrupted_and_goes_on() {
    let script = "cat >/dev/null; echo x >> ran; [ $UNSTUCK_ATTEMPT -ge 2 ] && echo fine && exit 0; echo '503 Service Unavailable' >&2; exit 1";
    let counted = "[policy]\ntemplate = \"pipeline\"\n".to_owned();
    let place = patient(&(counted + &role("a", "prompt = \"A\"", script)));
    let mut running = Running::start(&place, &["run"]);
    running.until("[Auto-retry 1/3]").signal(Signal::INT);
    running.end().told(130, &["Stopped", "unstuck resume"]);
    assert_eq!(place.lines("ran").len(), 1);
    place
        .run(&["resume"], "")
        .told(0, &["[Attempt 2] a → success"]);
    assert_eq!(place.lines("ran").len(), 2);
    assert_eq!(
        place.events("decision_made").len(),
        1,
        "it is not decided again"
    );
}

/// What was decided before a kill is done after it: the conversation that crashed goes on.
#[test]
fn a_decision_and_the_conversation_survive_a_kill() {
    let place = patient("[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt = \"Do it.\"\n");
    place.tool(
        "claude",
        "#!/bin/sh\necho \"$@\" >> args; cat >/dev/null\n[ $UNSTUCK_ATTEMPT -ge 2 ] && echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"All is done.\",\"session_id\":\"11-22\",\"total_cost_usd\":0.25}' && exit 0\necho '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"11-22\",\"model\":\"m\"}'; echo 'Segmentation fault (core dumped)' >&2; exit 139\n",
    );
    let mut running = Running::start(&place, &["run"]);
    running.until("[Auto-retry 1/2]");
    running.kill();
    place
        .run(&["resume"], "")
        .told(0, &["a waits until", "[Attempt 2] a → success", "$0.25"]);
    let args = place.lines("args");
    assert_eq!(args.len(), 2);
    assert!(args[1].contains("--resume 11-22"), "{args:?}");
}

/// A reset that is too far away for the policy is a question, with the moment.
#[test]
fn a_reset_that_is_too_far_away_is_a_question() {
    let script =
        "cat >/dev/null; echo \"Claude AI usage limit reached|$(($(date +%s)+7200))\"; exit 1";
    let place = patient(&format!(
        "[policy]\ntemplate = \"pipeline\"\nmaxWait = \"1h\"\n{}",
        role("a", "prompt = \"A\"", script)
    ));
    place
        .run(&["run"], "")
        .told(3, &["[Attempt 1] a → rate_limit_timed", "a needs a person"]);
    assert!(place.events("waiting_until").is_empty());
}

/// While one role waits for its limit, the others go on.
#[test]
fn the_others_go_on_while_one_waits() {
    let limited = "cat >/dev/null; [ $UNSTUCK_ATTEMPT -ge 2 ] && echo fine && exit 0; echo \"Claude AI usage limit reached|$(($(date +%s)+600))\"; exit 1";
    let work = "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; echo done";
    let place = patient(&format!(
        "[run]\nparallel = 1\n{}{}{}",
        role("waits", "prompt = \"A\"", limited),
        role("works", "prompt = \"B\"", work),
        role("after", "prompt = \"C\"\nneeds = [\"works\"]", work)
    ));
    let mut running = Running::start(&place, &["run"]);
    running.until("after → ").signal(Signal::INT);
    running.end().told(130, &["Stopped: 2 of 3 roles"]);
    assert_eq!(place.lines("ran"), ["works", "after"]);
}
