//! Tests that texts of agents, clients and repositories are never rendered as markup.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::Desk;
use crate::Place;
use crate::gateway::{api, by_user, until};

/// Hostile markup that would run, load or navigate something.
const HOSTILE: &str = "<img src=x onerror=wrong.push(1)><script>wrong.push(2)</script>'\"><b>";
/// A part of it, percent-encoded.
const ENCODED: &str = "%3Cimg%20src%3Dx%20onerror%3Dwrong.push(1)%3E";

/// An agent that prints one file and proposes another as a repair.
const CLAUDE: &str = "#!/bin/sh\ncat hostile >&2; [ -f proposal ] && cp proposal \"$UNSTUCK_RECOVERY_FILE\"\n\
    [ -f proposal ] || echo 'Not logged in · Please run /login'; cat hostile; exit 7\n";

/// Sets up a project with this name and hostile files.
fn project(place: &Place, name: &str) -> PathBuf {
    let project = place.folder.path().join(name);
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("hostile"), format!("zork {HOSTILE}\n")).unwrap();
    project
}

/// Runs a command in a project.
fn go(place: &Place, project: &PathBuf, args: &[&str]) -> Option<i32> {
    let mut command = place.command(args);
    let output = command.current_dir(project).output().unwrap();
    output.status.code()
}

/// Sets up a place in which every external name and text is hostile.
fn hostile() -> Place {
    let place = Place::new();
    by_user(&place, "[policy]\nmaxRetries = 0\n");
    place.tool("claude", CLAUDE);
    let named = project(&place, &HOSTILE.replace('/', "\u{2215}"));
    let exec = ["exec", "--", "claude", "--model", HOSTILE, "-p", HOSTILE];
    assert_eq!(go(&place, &named, &exec), Some(3));
    let roles = project(&place, "roles");
    let config = json!({
        "role": [{"id": "b", "model": HOSTILE, "agent": "command", "command": ["sh", "-c", "cat hostile >&2; exit 9", "{model}"], "prompt": HOSTILE}],
        "policy": {"enabled": false, "name": HOSTILE, "description": HOSTILE},
    });
    fs::write(roles.join("unstuck.json"), config.to_string()).unwrap();
    assert_eq!(go(&place, &roles, &["run", "--task", HOSTILE]), Some(1));
    let proposing = project(&place, "proposing");
    let proposal = json!({
        "version": 1, "timestamp": "2026-11-16T05:36:33Z", "category": "dependency", "severity": "blocking",
        "diagnosis": {"error_pattern": HOSTILE, "root_cause": HOSTILE, "evidence": [HOSTILE]},
        "recovery": {"command": "touch '<img src=x onerror=wrong.push(3)>'", "expected_outcome": HOSTILE, "confidence": "high"},
    });
    fs::write(proposing.join("proposal"), proposal.to_string()).unwrap();
    fs::write(proposing.join("unstuck.toml"), "[recovery]\n").unwrap();
    assert_eq!(go(&place, &proposing, &["trust"]), Some(0));
    let exec = ["exec", "--repair", "auto", "--", "claude", "-p", "x"];
    assert_eq!(go(&place, &proposing, &exec), Some(3));
    place
}

/// Returns all pages, including those of each run and escalation.
async fn pages(desk: &Desk, runs: &Value, inbox: &Value) -> Vec<String> {
    let plain = [
        "/",
        "/inbox",
        "/runs",
        "/failures",
        "/policies",
        "/settings",
    ];
    let mut pages = plain.map(str::to_owned).to_vec();
    for run in runs.as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        pages.extend([format!("/runs/{id}"), format!("/sessions/{id}-1")]);
    }
    let questions = inbox.as_array().unwrap().iter();
    pages.extend(questions.map(|one| format!("/inbox/{}", one["id"].as_str().unwrap())));
    desk.goto("/failures").await;
    let projects = "[...document.querySelectorAll('#project option')].map((one) => encodeURIComponent(one.value))";
    for project in desk.says(projects).await.as_array().unwrap() {
        pages.push(format!("/policies?project={}", project.as_str().unwrap()));
    }
    pages.push(format!(
        "/failures?model={ENCODED}&kind={ENCODED}&days={ENCODED}"
    ));
    pages
}

/// On every page nothing hostile runs or is blocked by the browser, and all of it is readable.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_is_only_text() {
    let place = hostile();
    let api = api("[[step]]\nserver_error = {}\ntimes = \"always\"\n");
    let upstream = format!("anthropic={}", api.url());
    let desk = Desk::open(&place, &["--upstream", &upstream]).await;
    let body = json!({"model": HOSTILE, "max_tokens": 9, "messages": [{"role": "user", "content": HOSTILE}]});
    let status = desk.posted("/s/client/anthropic/v1/messages", body).await;
    assert_eq!(status, 500);
    let runs = until("the call is written down", || {
        let runs = place.json(&["runs", "--json"], "");
        (runs.as_array()?.len() == 4).then_some(runs)
    });
    let inbox = place.json(&["inbox", "--json"], "");
    let mut seen = 0;
    for path in pages(&desk, &runs, &inbox).await {
        desk.goto(&path).await;
        desk.says("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            .await;
        desk.until("window.wrong.length === 0").await;
        let foreign =
            "document.querySelectorAll('main img, main script, main b, iframe, [onerror]').length";
        assert_eq!(desk.says(foreign).await, 0, "{path}");
        let shown = "document.body.innerText.includes('<img src=x onerror')";
        seen += i32::from(desk.says(shown).await == true);
    }
    assert!(seen >= 12, "it is shown on {seen} pages only");
    desk.goto("/").await;
    desk.picture("strangers-now").await;
    desk.close().await;
}

/// The same in dialogs, which are loaded later.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_is_only_text_in_dialogs() {
    let place = hostile();
    let desk = Desk::open(&place, &[]).await;
    let inbox = place.json(&["inbox", "--json"], "");
    let asked = |kind: &str| {
        let mut all = inbox.as_array().unwrap().iter();
        all.find(|one| one["type"] == kind).unwrap().clone()
    };
    let session = asked("hiccup")["run"].clone();
    desk.goto(&format!("/sessions/{}-1", session.as_str().unwrap()))
        .await;
    desk.press("#open-retry").await;
    desk.until("document.getElementById('retry-prompt')?.value.includes('<script>')")
        .await;
    desk.press("#retry [data-close]").await;
    desk.press("#open-escalate").await;
    desk.until("!document.querySelector('#escalate').innerText.includes('Loading')")
        .await;
    desk.picture("strangers-session").await;
    let proposed = asked("recovery_approval_required")["id"].clone();
    desk.goto(&format!("/inbox/{}", proposed.as_str().unwrap()))
        .await;
    desk.press("#open-preview").await;
    desk.shows("#preview", "<img src=x onerror=wrong.push(3)>")
        .await;
    desk.picture("strangers-preview").await;
    desk.close().await;
}
