//! Checks that every button is pressed by some test.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Beside, Desk};
use crate::Place;
use crate::gateway::{by_user, until};
use crate::web::asking;

/// Test sources whose presses are collected.
const SOURCES: [&str; 9] = [
    include_str!("entering.rs"),
    include_str!("failures.rs"),
    include_str!("inbox.rs"),
    include_str!("now.rs"),
    include_str!("policies.rs"),
    include_str!("reading.rs"),
    include_str!("session.rs"),
    include_str!("settings.rs"),
    include_str!("strangers.rs"),
];

/// Script that lists the buttons of a page by type, and whether one of the selectors matches.
const FOUND: &str = r#"
    const plain = (text) => (text || "").replace(/[a-z0-9]{10}[^\/?&]*/g, "*").replace(/=[^&]*/g, "=");
    const what = (it) => [it.tagName, it.id, it.name, it.value, it.type, Object.keys(it.dataset).sort(), plain(it.getAttribute("href")),
        it.closest("form")?.id, plain(it.closest("form")?.dataset.api), it.closest("form")?.getAttribute("action"), it.closest("dialog")?.id].join("|");
    return [...document.querySelectorAll("button, a.button, [data-dialog], input[type=submit]")]
        .map((it) => [what(it), arguments[0].some((selector) => it.matches(selector)), it.outerHTML]);
"#;

/// Returns the selectors of all presses.
fn selectors() -> Vec<&'static str> {
    let calls = SOURCES
        .iter()
        .flat_map(|text| text.split(".press(").skip(1));
    calls
        .filter_map(|call| call.trim_start().strip_prefix('"')?.split('"').next())
        .collect()
}

/// Sets up everything that has buttons, except running sessions.
fn busy() -> Place {
    let place = asking();
    by_user(
        &place,
        "[webhooks]\nallow_private = true\non_escalation = \"http://127.0.0.1:9/hook\"\n",
    );
    place.write("unstuck.toml", "[recovery]\ncooldown_seconds = 0\n");
    place.run(&["trust"], "").told(0, &[]);
    let broken = "test -d out/reports || { echo \"report: directory 'out/reports' does not exist\" >&2; exit 1; }";
    let repair = ["exec", "--repair", "auto", "--", "sh", "-c", broken];
    place.run(&repair, "").told(3, &[]);
    let ask = [
        "exec",
        "--",
        "claude",
        "--model",
        "claude-sonnet-5-5",
        "-p",
        "x",
    ];
    place.run(&ask, "").told(3, &[]);
    place
}

/// Returns the ids in a list.
fn ids(listing: &Value) -> Vec<String> {
    let all = listing.as_array().unwrap().iter();
    all.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns all pages of three runs and their escalations.
fn pages(place: &Place) -> Vec<String> {
    let plain = [
        "/",
        "/inbox",
        "/runs",
        "/failures",
        "/policies",
        "/settings",
        "/login",
        "/nowhere",
    ];
    let mut pages = plain.map(str::to_owned).to_vec();
    let runs = until("all are there", || {
        let runs = place.json(&["runs", "--json"], "");
        (runs.as_array()?.len() == 3).then_some(runs)
    });
    for id in ids(&runs) {
        pages.extend([format!("/runs/{id}"), format!("/sessions/{id}-1")]);
    }
    let questions = place.json(&["inbox", "--json"], "");
    pages.extend(ids(&questions).iter().map(|id| format!("/inbox/{id}")));
    pages
}

/// A new button on any page must be pressed by a test.
#[tokio::test(flavor = "multi_thread")]
async fn every_button_is_pressed_by_a_test() {
    let place = busy();
    let desk = Desk::open(&place, &[]).await;
    let _working = Beside::start(&place, &["exec", "--", "sleep", "1000"], &[]);
    let mut all: Vec<(Value, bool, Value)> = Vec::new();
    for path in pages(&place) {
        desk.browser.page.goto(&desk.url(&path)).await.unwrap();
        desk.until("document.documentElement.classList.contains('scripted')")
            .await;
        all.extend(found(&desk).await);
        let openers = "[...document.querySelectorAll('[data-dialog]:not(:disabled)')].map((one) => one.dataset.dialog)";
        for dialog in desk.says(openers).await.as_array().unwrap() {
            let dialog = dialog.as_str().unwrap();
            desk.says(&format!("document.getElementById('open-{dialog}').click()"))
                .await;
            desk.until(&format!(
                "document.querySelector('#{dialog} [data-close]') !== null"
            ))
            .await;
            all.extend(found(&desk).await);
            desk.says(&format!("document.getElementById('{dialog}').close()"))
                .await;
        }
    }
    let pressed = all.iter().filter(|(_, pressed, _)| *pressed);
    let pressed: BTreeSet<_> = pressed.map(|(what, ..)| what.to_string()).collect();
    let never = all
        .iter()
        .filter(|(what, ..)| !pressed.contains(&what.to_string()));
    let never: BTreeSet<_> = never.map(|(.., html)| html.to_string()).collect();
    assert!(pressed.len() > 20, "{pressed:#?}");
    assert!(never.is_empty(), "no test presses {never:#?}");
    desk.browser.close().await;
}

async fn found(desk: &Desk) -> Vec<(Value, bool, Value)> {
    let page = &desk.browser.page;
    let found = page.execute(FOUND, vec![json!(selectors())]).await.unwrap();
    let found = found.as_array().unwrap().iter();
    found
        .map(|one| (one[0].clone(), one[1] == true, one[2].clone()))
        .collect()
}
