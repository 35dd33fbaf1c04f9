//! Policies: for everybody and for a project, and two people at once.

use serde_json::{Value, json};

use super::Desk;
use super::chromium::LOOKS;
use crate::Place;

/// A command that fails for a moment, and counts how often it was tried.
const EXEC: [&str; 5] = [
    "exec",
    "--",
    "sh",
    "-c",
    "echo x >> tries; echo 'connect: connection refused' >&2; exit 1",
];

async fn saved(desk: &Desk) {
    desk.press("#policy button[type=submit]").await;
    desk.shows("#policy > .says", "Saved").await;
}

/// S4-16, S4-26, S4-27, S4-32: what is saved counts for the next run, for everybody and for one project.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_saved_counts_for_the_next_run() {
    let place = Place::new();
    place.run(&["exec", "--", "true"], "").told(0, &[]);
    let Some(desk) = Desk::open(&place, &[]).await else {
        return;
    };
    desk.goto("/policies").await;
    desk.press("article:has([data-fill]):nth-of-type(2) [data-fill]")
        .await;
    desk.shows("#policy > .says", "Nothing is saved yet").await;
    let filled = desk
        .says("document.getElementById('maxRetries').value")
        .await;
    for (field, value) in [
        ("#maxRetries", "1"),
        ("#backoffBase", "0.01"),
        ("#maxBackoff", "0.02"),
    ] {
        desk.fill(field, value).await;
    }
    assert_ne!(filled, "1");
    desk.fill("#jitter", "none").await;
    saved(&desk).await;
    desk.shows("[data-part=words]", "2 tries").await;
    desk.picture("policies").await;
    place.run(&EXEC, "").told(3, &[]);
    assert_eq!(place.lines("tries").len(), 2);
    desk.press("a.button[href^='/policies?project=']").await;
    desk.shows("[data-part=words]", "that of everybody").await;
    desk.fill("#maxRetries", "0").await;
    saved(&desk).await;
    desk.shows("[data-part=words]", "set here").await;
    place.run(&EXEC, "").told(3, &[]);
    assert_eq!(place.lines("tries").len(), 3);
    desk.press("a.button[href='/policies']").await;
    desk.shows("[data-part=words]", "2 tries").await;
    desk.press("#open-take-away").await;
    desk.picture("policy-take-away").await;
    desk.press("#take-away [data-close]").await;
    desk.press("#open-take-away").await;
    desk.press("#take-away button[type=submit]").await;
    desk.shows("[data-part=words]", "built in").await;
    desk.until("document.getElementById('open-take-away') === null")
        .await;
    desk.close().await;
}

/// S4-16: single kinds and tools have values of their own, which are added, told wrong in place, saved and taken away.
#[tokio::test(flavor = "multi_thread")]
async fn single_kinds_and_tools_have_values_of_their_own() {
    let place = Place::new();
    let Some(desk) = Desk::open(&place, &[]).await else {
        return;
    };
    let rows = "document.querySelectorAll('#policy [data-own]').length";
    desk.goto("/policies").await;
    desk.press("#policy details[data-key=own] > summary").await;
    desk.fill("#add-kinds", "timeout").await;
    desk.press("#policy [data-add=kinds]").await;
    desk.fill("[name='kinds.timeout.maxRetries']", "5").await;
    desk.fill("[name='kinds.timeout.backoffBase']", "99").await;
    desk.fill("[name='kinds.timeout.curve']", "fixed").await;
    desk.fill("#add-tools", "mcp.search").await;
    desk.press("#policy [data-add=tools]").await;
    desk.fill("[name='tools.mcp.search.maxRetries']", "1").await;
    desk.press("#policy button[type=submit]").await;
    desk.shows("[id='kinds.timeout.maxBackoff-wrong']", "backoffBase")
        .await;
    desk.picture("policy-own-values").await;
    desk.fill("[name='kinds.timeout.maxBackoff']", "120").await;
    saved(&desk).await;
    let policy = kept(&desk).await;
    assert_eq!(
        policy["kinds"],
        json!({"timeout": {"maxRetries": 5, "backoffBase": 99.0, "maxBackoff": 120.0, "curve": "fixed"}})
    );
    assert_eq!(policy["tools"], json!({"mcp.search": {"maxRetries": 1}}));
    desk.goto("/policies").await;
    assert_eq!(desk.says(rows).await, 2, "they are there again");
    desk.press("#policy [data-own=tools] [data-remove]").await;
    saved(&desk).await;
    let policy = kept(&desk).await;
    assert_eq!(policy["tools"], json!({}));
    assert_eq!(policy["kinds"]["timeout"]["maxRetries"], 5);
    desk.press("article:has([data-fill]):nth-of-type(2) [data-fill]")
        .await;
    assert_eq!(desk.says(rows).await, 0, "the template has none");
    desk.close().await;
}

/// The policy of everybody.
async fn kept(desk: &Desk) -> Value {
    serde_json::from_str(&desk.fetched("/api/retry-policy").await).unwrap()
}

/// S4-26: what makes no sense stands at its field, and of two people the second is told before the first is overwritten.
#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told_in_place_and_nobody_is_overwritten() {
    let place = Place::new();
    let Some(desk) = Desk::open(&place, &[]).await else {
        return;
    };
    desk.goto("/policies").await;
    desk.says("document.getElementById('maxElapsed').removeAttribute('pattern')")
        .await;
    desk.fill("#maxElapsed", "soon").await;
    desk.press("#policy button[type=submit]").await;
    desk.shows("#maxElapsed-wrong", "duration").await;
    desk.picture("policy-mistake").await;
    desk.fill("#maxElapsed", "2h").await;
    let page = &desk.browser.page;
    let first = page.window().await.unwrap();
    let second = page.new_window(true).await.unwrap();
    page.switch_to_window(second.handle).await.unwrap();
    desk.browser.look(LOOKS[0]).await;
    desk.goto("/policies").await;
    desk.fill("#maxRetries", "9").await;
    saved(&desk).await;
    page.switch_to_window(first).await.unwrap();
    desk.fill("#maxRetries", "1").await;
    desk.press("#policy button[type=submit]").await;
    desk.shows("#policy > .says", "Somebody else saved").await;
    desk.shows("#maxRetries-wrong", "theirs: 9").await;
    desk.shows("#maxElapsed-wrong", "theirs: 12h").await;
    desk.picture("policy-conflict").await;
    assert_eq!(kept(&desk).await["maxRetries"], 9);
    let wrong = "document.querySelectorAll('#policy .wrong').length";
    assert_eq!(desk.says(wrong).await, 2, "nothing else is different");
    saved(&desk).await;
    let policy = kept(&desk).await;
    assert_eq!(
        (&policy["maxRetries"], &policy["maxElapsed"]),
        (&1.into(), &"2h".into()),
        "what was typed is not lost"
    );
    desk.browser.close().await;
}
