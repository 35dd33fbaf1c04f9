//! Tests of delays between attempts: their length, interruption and persistence.

use rustix::process::Signal;
use serde_json::json;

use super::{Running, role};
use crate::Place;
use crate::output_snapshot::assert_output;

/// Sets up a project with the default delays of the pipeline's policy.
fn patient(config: &str) -> Place {
    let place = Place::new();
    place.write("unstuck.toml", config);
    place
}

/// S1-27: delays of a pipeline grow linearly by the kind's own multiplier.
#[test]
fn delay_is_the_multiplier_times_the_retry_number() {
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

/// Ctrl-C during a delay stops immediately, and the delay continues on resume.
#[test]
fn interrupted_delay_continues_on_resume() {
    let script = "cat >/dev/null; echo x >> ran; [ $UNSTUCK_ATTEMPT -ge 2 ] && echo fine && exit 0; echo '503 Service Unavailable' >&2; exit 1";
    let counted = "[policy]\ntemplate = \"pipeline\"\n".to_owned();
    let place = patient(&(counted + &role("a", "prompt = \"A\"", script)));
    let mut running = Running::start(&place, &["run"]);
    running.until("[Auto-retry 1/3]").signal(Signal::INT);
    assert_output!(place, running.end().told(130, &[]).stderr);
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

/// A decision made before a kill is carried out after it: the crashed conversation continues.
#[test]
fn decision_and_conversation_survive_a_kill() {
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
        .told(0, &["a: waiting until", "[Attempt 2] a → success", "$0.25"]);
    let args = place.lines("args");
    assert_eq!(args.len(), 2);
    assert!(args[1].contains("--resume 11-22"), "{args:?}");
}

/// A reset too far away for the policy leads to an escalation with the time.
#[test]
fn reset_too_far_away_leads_to_an_escalation() {
    let script =
        "cat >/dev/null; echo \"Claude AI usage limit reached|$(($(date +%s)+7200))\"; exit 1";
    let place = patient(&format!(
        "[policy]\ntemplate = \"pipeline\"\nmaxWait = \"1h\"\n{}",
        role("a", "prompt = \"A\"", script)
    ));
    place.run(&["run"], "").told(
        3,
        &["[Attempt 1] a → rate_limit_timed", "a needs your input"],
    );
    assert!(place.events("waiting_until").is_empty());
}

/// While one role waits for its limit, the others continue.
#[test]
fn other_roles_continue_while_one_waits() {
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
