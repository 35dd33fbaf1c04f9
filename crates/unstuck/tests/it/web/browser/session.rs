//! Tests of session and run pages: attempts are shown, and buttons do what they state.

use std::path::Path;

use super::{Beside, Desk};
use crate::Place;
use crate::gateway::{api, by_user, until};

/// An agent that fails with a message until a file exists.
const FAILS: &str = "#!/bin/sh\nprintf '%s\\n' \"$*\" >> calls; [ -f fixed ] && echo 'all green' && exit 0\n\
    echo 'halfway through'; echo 'error: the database is locked by migration 7' >&2; exit 9\n";

/// Returns the id of the only run.
fn run(place: &Place) -> String {
    let runs = place.json(&["runs", "--json"], "");
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
    runs[0]["id"].as_str().unwrap().to_owned()
}

/// Waits until the only run has this status.
fn stands(place: &Place, status: &str) {
    until(&format!("the run is {status}"), || {
        let runs = place.json(&["runs", "--json"], "");
        (runs[0]["status"] == status).then_some(())
    });
}

/// S4-06, S4-07, S4-08, S4-28, S4-32: retries a session unchanged, then with the error and additional instructions.
#[tokio::test(flavor = "multi_thread")]
async fn session_is_retried_from_its_page() {
    let place = Place::new();
    place.tool("claude", FAILS);
    let exec = [
        "exec",
        "--policy",
        "off",
        "--",
        "claude",
        "-p",
        "fix the tests",
    ];
    place.run(&exec, "").told(9, &[]);
    let desk = Desk::open(&place, &[]).await;
    desk.goto(&format!("/runs/{}", run(&place))).await;
    desk.press("a.button[href^='/sessions/']").await;
    desk.shows("h1", "claude -p 'fix the tests'").await;
    desk.shows("[data-part=attempts]", "locked by migration 7")
        .await;
    desk.press("details[data-key^='stdout-'] summary").await;
    desk.shows("details[data-key^='stdout-']", "halfway through")
        .await;
    desk.press("#open-retry-plain").await;
    desk.press("#retry-plain [data-close]").await;
    desk.until("!document.getElementById('retry-plain').open")
        .await;
    desk.press("#open-retry-plain").await;
    desk.fill("#plain-timeout", "soon").await;
    desk.press("#retry-plain button[type=submit]").await;
    desk.shows("#retry-plain", "must be a duration like 30s")
        .await;
    desk.picture("retry-refused").await;
    assert_eq!(place.lines("calls").len(), 1);
    desk.fill("#plain-timeout", "5m").await;
    desk.press("#retry-plain button[type=submit]").await;
    desk.shows("[data-part=attempts]", "Attempt 2").await;
    until("it was tried again", || {
        (place.lines("calls").len() == 2).then_some(())
    });
    stands(&place, "failed");
    place.write("fixed", "");
    desk.press("#open-retry").await;
    desk.until("document.getElementById('retry-prompt')?.value.includes('migration 7')")
        .await;
    desk.picture("retry-with-context").await;
    desk.press("#retry [data-close]").await;
    desk.press("#open-retry").await;
    desk.until("document.getElementById('retry-prompt')?.value.includes('migration 7')")
        .await;
    desk.says("document.getElementById('retry-prompt').value += '\\nWait for the migration.'")
        .await;
    desk.press("#retry button[type=submit]").await;
    desk.shows("[data-part=head]", "Recovered").await;
    let calls = place.lines("calls").join("\n");
    for part in [
        "fix the tests",
        "locked by migration 7",
        "Wait for the migration.",
    ] {
        assert!(calls.contains(part), "{part} in {calls}");
    }
    desk.shows("[data-part=attempts] .diff .is-added", "").await;
    desk.shows("[data-part=attempts]", "Wait for the migration.")
        .await;
    desk.picture("session-recovered").await;
    desk.close().await;
}

/// S4-11, S4-13, S4-32: the cost of a stronger model is shown first; once confirmed, the agent uses it and the header
/// shows both models.
#[tokio::test(flavor = "multi_thread")]
async fn session_continues_with_a_stronger_model() {
    let place = Place::new();
    place.tool(
        "claude",
        "#!/bin/sh\necho \"$@\" >> calls; case \"$*\" in *opus*) echo done; exit 0;; esac; echo 'Not logged in · Please run /login'; exit 7\n",
    );
    let exec = [
        "exec",
        "--",
        "claude",
        "--model",
        "claude-sonnet-5-5",
        "-p",
        "x",
    ];
    place.run(&exec, "").told(3, &[]);
    let desk = Desk::open(&place, &[]).await;
    desk.goto(&format!("/sessions/{}-1", run(&place))).await;
    desk.press("#open-escalate").await;
    desk.shows("#escalate", "Estimated cost").await;
    desk.shows("#escalate", "claude-opus-5-5").await;
    desk.picture("escalate").await;
    desk.press("#escalate [data-close]").await;
    assert_eq!(place.lines("calls").len(), 1, "nothing was changed");
    desk.press("#open-escalate").await;
    desk.press("#escalate button[type=submit]").await;
    desk.shows("[data-part=head]", "claude-sonnet-5-5 → claude-opus-5-5")
        .await;
    desk.shows("[data-part=head]", "Recovered").await;
    assert!(place.lines("calls")[1].contains("claude-opus-5-5"));
    let refused =
        "[...document.querySelectorAll('[data-dialog]')].every((one) => one.disabled && one.title)";
    desk.until(refused).await;
    desk.close().await;
}

/// S4-11, S4-12, S4-21: a running agent is switched to a stronger model without a restart.
#[tokio::test(flavor = "multi_thread")]
async fn running_session_is_switched_to_a_stronger_model() {
    let place = Place::new();
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    let asks = format!(
        "#!/bin/sh\nexport FAULTS_API_URL=\"$ANTHROPIC_BASE_URL\"\n\
         while [ ! -e enough ]; do \"{unstuck}\" __demo-agent --model claude-sonnet-5-5 -p go > /dev/null || exit 1; sleep 0.1; done; echo done\n"
    );
    place.tool("claude", &asks);
    let api = api(
        "[[step]]\nanswer = { text = \"Go on.\", input_tokens = 1000, output_tokens = 100 }\ntimes = \"always\"\n",
    );
    let exec = ["exec", "--", "claude", "-p", "x"];
    let desk = Desk::open(&place, &[]).await;
    let mut agent = Beside::start(&place, &exec, &[("ANTHROPIC_BASE_URL", &api.url())]);
    let newest = || api.requests().last().map(|request| request.model.clone());
    until("the first call", newest);
    desk.goto(&format!("/sessions/{}-1", run(&place))).await;
    desk.shows("[data-part=head]", "k tokens").await;
    desk.press("#open-escalate").await;
    desk.shows("#escalate", "the conversation continues").await;
    desk.press("#escalate button[type=submit]").await;
    until("calls go to the stronger model", || {
        newest().filter(|model| model == "claude-opus-5-5")
    });
    desk.shows("[data-part=head]", "claude-sonnet-5-5 → claude-opus-5-5")
        .await;
    place.write("enough", "");
    assert_eq!(agent.code(), Some(0));
    desk.shows("[data-part=head]", "Succeeded").await;
    desk.close().await;
}

/// S4-31: parallel roles send their events live; stopping ends all of their processes.
#[tokio::test(flavor = "multi_thread")]
async fn pipeline_is_followed_and_stopped() {
    let place = Place::new();
    by_user(&place, "[policy]\nmaxRetries = 1\nbackoffBase = 0.01\n");
    let role = |id: &str, needs: &str, line: &str| {
        format!(
            "[[role]]\nid = \"{id}\"\nneeds = [{needs}]\nagent = \"command\"\ncommand = [\"sh\", \"-c\", '''{line}''']\n"
        )
    };
    let roles = [
        role(
            "plan",
            "",
            "[ -f once ] && echo planned && exit 0; touch once; echo 'connect: connection refused' >&2; exit 1",
        ),
        role("build", "\"plan\"", "sleep 1000 & echo $! > pid; wait"),
        role(
            "test",
            "\"plan\"",
            "while [ ! -f go ]; do sleep 0.1; done; echo tested",
        ),
    ];
    place.write("unstuck.toml", &roles.concat());
    let desk = Desk::open(&place, &[]).await;
    let mut driver = Beside::start(&place, &["run", "--task", "make it green"], &[]);
    let pid = until("the second role works", || {
        Some(place.lines("pid").first()?.clone())
    });
    desk.goto(&format!("/runs/{}", run(&place))).await;
    for part in ["plan", "build", "test"] {
        desk.shows("[data-part=sessions]", part).await;
    }
    desk.shows("[data-part=attempts]", "connection refused")
        .await;
    let before = "document.querySelectorAll('[data-part=events] li').length";
    let count = desk.says(before).await;
    place.write("go", "");
    desk.until(&format!("{before} > {count}")).await;
    desk.shows("[data-part=sessions]", "Succeeded").await;
    desk.picture("pipeline").await;
    desk.press("#open-stop").await;
    desk.picture("stop").await;
    desk.press("#stop [data-close]").await;
    assert!(Path::new("/proc").join(&pid).exists());
    desk.press("#open-stop").await;
    desk.press("#stop button[type=submit]").await;
    assert_eq!(driver.code(), Some(130));
    assert!(!Path::new("/proc").join(&pid).exists());
    desk.shows("[data-part=head]", "stopped by the user").await;
    desk.until("document.getElementById('open-stop') === null")
        .await;
    stands(&place, "interrupted");
    desk.close().await;
}
