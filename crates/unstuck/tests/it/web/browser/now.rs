//! Tests of the overview: escalations, active sessions and upstreams.

use super::{Beside, Desk};
use crate::Place;
use crate::gateway::{api, by_user};
use crate::web::asking;

/// S4-04, S4-32: a wait is shown with countdown, attempt, reason and model, and updates without a reload.
#[tokio::test(flavor = "multi_thread")]
async fn active_session_is_updated_live() {
    let place = Place::new();
    by_user(
        &place,
        "[policy]\nmaxRetries = 3\njitter = \"none\"\nbackoffBase = 600\nmaxBackoff = 600\n",
    );
    place.tool("claude", "#!/bin/sh\ntouch began; while [ ! -f go ]; do sleep 0.1; done; echo 'API Error: 529 overloaded_error'; exit 1\n");
    let desk = Desk::open(&place, &[]).await;
    desk.shows("[data-part=sessions]", "No active sessions.")
        .await;
    desk.picture("now-empty").await;
    let mut run = Beside::start(
        &place,
        &[
            "exec",
            "--",
            "claude",
            "--model",
            "claude-sonnet-5-5",
            "-p",
            "fix the tests",
        ],
        &[],
    );
    desk.shows("[data-part=sessions]", "Running").await;
    desk.shows("[data-part=sessions]", "1 of 4").await;
    desk.shows("[data-part=sessions]", "claude-sonnet-5-5")
        .await;
    place.write("go", "");
    desk.shows("[data-part=sessions]", "Retrying in 9 min")
        .await;
    desk.shows("[data-part=sessions]", "overloaded").await;
    let left = "document.querySelector('[data-part=sessions] [data-until]').innerText";
    let before = desk.says(left).await;
    desk.until(&format!("{left} !== {before}")).await;
    desk.shows("[data-part=tiles]", "1\nwaiting to retry").await;
    desk.picture("now-waiting").await;
    run.stop();
    desk.shows("[data-part=sessions]", "No active sessions.")
        .await;
    desk.shows("[data-part=ended]", "fix the tests").await;
    desk.close().await;
}

/// S3-44: an escalation appears on top immediately, and in the window title.
#[tokio::test(flavor = "multi_thread")]
async fn new_escalation_appears_on_top() {
    let place = asking();
    let desk = Desk::open(&place, &[]).await;
    desk.goto("/").await;
    place
        .run(&["exec", "--", "claude", "-p", "x"], "")
        .told(3, &[]);
    desk.shows("[data-part=needs]", "Not logged in").await;
    desk.until("document.title.startsWith('(1) ')").await;
    desk.picture("now-needs-you").await;
    desk.press("[data-part=needs] a.button[href^='/inbox/']")
        .await;
    desk.shows("h1", "Blocked").await;
    desk.close().await;
}

/// S4-35: upstreams are shown with nearly exhausted limits and open circuit breakers.
#[tokio::test(flavor = "multi_thread")]
async fn upstreams_show_limits_and_circuit_breakers() {
    let place = Place::new();
    by_user(&place, "[policy]\nmaxRetries = 0\n");
    let down = api("[[step]]\nserver_error = {}\ntimes = \"always\"\n");
    let limited = api(
        "[limits]\nrequests_per_minute = 50\n[[step]]\nanswer = { text = \"Done.\", input_tokens = 1000, output_tokens = 100 }\ntimes = \"always\"\n",
    );
    let (down, limited) = (down.url(), limited.url());
    let upstreams = [format!("anthropic={down}"), format!("anthropic={limited}")];
    let args = ["--upstream", &upstreams[0], "--upstream", &upstreams[1]];
    let desk = Desk::open(&place, &args).await;
    desk.goto("/").await;
    let line = format!(
        "export ANTHROPIC_BASE_URL=http://127.0.0.1:{}/anthropic",
        desk.serving.port
    );
    desk.shows("[data-part=upstreams]", &line).await;
    for _ in 0..8 {
        let answer = desk.serving.ask(&place);
        assert!(answer.stdout.contains("Done."), "{}", answer.stdout);
    }
    desk.shows("[data-part=upstreams]", "Down").await;
    desk.shows("[data-part=upstreams]", "next probe").await;
    desk.shows("[data-part=upstreams]", "of 50 requests").await;
    desk.shows("[data-part=sessions]", "Calls from ").await;
    desk.shows("[data-part=sessions]", "$0.04").await;
    desk.picture("now-upstreams").await;
    desk.close().await;
}

/// Browsers share six connections per server among all windows: many windows must not block each other.
#[tokio::test(flavor = "multi_thread")]
async fn many_windows_can_be_open_at_once() {
    let place = asking();
    let desk = Desk::open(&place, &[]).await;
    for path in [
        "/",
        "/inbox",
        "/runs",
        "/failures",
        "/policies",
        "/settings",
        "/runs",
    ] {
        desk.goto(path).await;
    }
    let page = &desk.browser.page;
    let first = page.window().await.unwrap();
    for path in [
        "/inbox",
        "/runs",
        "/failures",
        "/policies",
        "/settings",
        "/runs",
        "/",
    ] {
        let next = page.new_window(true).await.unwrap();
        page.switch_to_window(next.handle).await.unwrap();
        desk.goto(path).await;
    }
    place
        .run(&["exec", "--", "claude", "-p", "x"], "")
        .told(3, &[]);
    desk.shows("[data-part=needs]", "Not logged in").await;
    page.switch_to_window(first).await.unwrap();
    desk.until("document.title.startsWith('(1) ')").await;
    desk.browser.close().await;
}
