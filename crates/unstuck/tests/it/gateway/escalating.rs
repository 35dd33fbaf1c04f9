//! `unstuck escalate`: switches the model of a running session.

use std::fs;
use std::process::Stdio;

use super::{QUICK, api, until};
use crate::Place;
use crate::output_snapshot::assert_output;

/// Returns a place whose `claude` calls its API repeatedly until a file stops it.
fn busy(model: &str) -> Place {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    place.tool(
        "claude",
        &format!(
            "#!/bin/sh\nexport FAULTS_API_URL=\"$ANTHROPIC_BASE_URL\"\n\
             while [ ! -e enough ]; do \"{unstuck}\" __demo-agent --model {model} -p go > /dev/null || exit 1; sleep 0.1; done\n\
             echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\"session_id\":\"s1\"}}'\n"
        ),
    );
    place
}

const ANSWERS: &str = "[[step]]\nanswer = { text = \"Go on.\", input_tokens = 1000, output_tokens = 100 }\ntimes = \"always\"\n";

/// S4-11, S4-12, S4-13, S4-21: one command, with its cost shown before; the agent is not restarted.
#[test]
fn running_session_switches_to_a_stronger_model() {
    let place = busy("claude-sonnet-5-5");
    let api = api(ANSWERS);
    let mut command =
        place.command(&["exec", "--", "claude", "-p", "x", "--output-format", "json"]);
    command
        .env("ANTHROPIC_BASE_URL", api.url())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let newest = || api.requests().last().map(|request| request.model.clone());
    until("the first call", newest);
    let run = until("the run is listed", || {
        let runs = place.json(&["runs", "--json"], "");
        Some(runs[0]["id"].as_str()?.to_owned())
    });
    // Its calls are recorded with a short delay.
    let refused = until("its model is known", || {
        let refused = place.run(&["escalate", &run], "");
        (refused.code != 1).then_some(refused)
    });
    refused.told(2, &[]);
    assert_output!(place, refused.stderr);
    let moved = place.run(&["escalate", &run, "--yes"], "");
    assert_eq!(moved.code, 0, "{}", moved.stderr);
    for part in ["claude-sonnet-5-5 → claude-opus-5-5", "USD per million"] {
        assert!(moved.stdout.contains(part), "{part} in {}", moved.stdout);
    }
    let is = |model: &'static str| move || (newest() == Some(model.to_owned())).then_some(());
    until("calls go to the stronger model", is("claude-opus-5-5"));
    let top = place.run(&["escalate", &run, "--yes"], "");
    top.told(1, &[]);
    assert_output!(place, top.stderr);
    let back = place.run(&["escalate", &run, "--back", "--yes"], "");
    assert_eq!(back.code, 0, "{}", back.stderr);
    until("calls go back", is("claude-sonnet-5-5"));
    let again = place.run(&["escalate", &run, "--back", "--yes"], "");
    again.told(1, &[]);
    assert_output!(place, again.stderr);
    let other = place.run(&["escalate", &run, "--to", "claude-haiku-5-5", "--yes"], "");
    assert_eq!(other.code, 0, "{}", other.stderr);
    until("calls go where they are told", is("claude-haiku-5-5"));
    fs::write(place.project().join("enough"), "").unwrap();
    assert!(child.wait().unwrap().success());
    let exported = place.run(&["store", "export"], "").stdout;
    assert_eq!(
        exported.matches("\"model_escalated\"").count(),
        3,
        "{exported}"
    );
    assert!(exported.contains("\"reason\":\"manual\""), "{exported}");
    let late = place.run(&["escalate", &run, "--to", "x", "--yes"], "");
    late.told(1, &[]);
    assert_output!(place, late.stderr);
}

/// S4-15: at the top of the ladder, or without a known ladder, nothing is switched.
#[test]
fn top_of_the_ladder_has_no_stronger_model() {
    let place = Place::new();
    let unknown = place.run(&["escalate", "nonsense"], "");
    unknown.told(1, &[]);
    assert_output!(place, unknown.stderr);
    let unnamed = place.run(&["escalate", "--to", "x"], "");
    unnamed.told(2, &[]);
    assert_output!(place, unnamed.stderr);
}
