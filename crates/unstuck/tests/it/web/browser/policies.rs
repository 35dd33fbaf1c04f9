//! Tests of the policies page: default and project policies, and concurrent changes.

use serde_json::{Value, json};

use super::Desk;
use super::chromium::LOOKS;
use crate::Place;

/// A command that fails temporarily and counts its executions.
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

/// S4-16, S4-26, S4-27, S4-32: a saved policy applies to the next run, as default and for one project.
#[tokio::test(flavor = "multi_thread")]
async fn saved_policy_applies_to_the_next_run() {
    let place = Place::new();
    place.run(&["exec", "--", "true"], "").told(0, &[]);
    let desk = Desk::open(&place, &[]).await;
    desk.goto("/policies").await;
    desk.press("article:has([data-fill]):nth-of-type(2) [data-fill]")
        .await;
    desk.shows("#policy > .says", "Not saved yet").await;
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
    desk.shows("[data-part=words]", "2 attempts").await;
    desk.picture("policies").await;
    place.run(&EXEC, "").told(3, &[]);
    assert_eq!(place.lines("tries").len(), 2);
    desk.press("a.button[href^='/policies?project=']").await;
    desk.shows("[data-part=words]", "default policy").await;
    desk.fill("#maxRetries", "0").await;
    saved(&desk).await;
    desk.shows("[data-part=words]", "set here").await;
    place.run(&EXEC, "").told(3, &[]);
    assert_eq!(place.lines("tries").len(), 3);
    desk.press("a.button[href='/policies']").await;
    desk.shows("[data-part=words]", "2 attempts").await;
    desk.press("#open-take-away").await;
    desk.picture("policy-take-away").await;
    desk.press("#take-away [data-close]").await;
    desk.press("#open-take-away").await;
    desk.press("#take-away button[type=submit]").await;
    desk.shows("[data-part=words]", "built-in").await;
    desk.until("document.getElementById('open-take-away') === null")
        .await;
    desk.close().await;
}

/// S4-16: overrides of kinds and tools can be added, validated in place, saved and removed.
#[tokio::test(flavor = "multi_thread")]
async fn kinds_and_tools_have_overrides() {
    let place = Place::new();
    let desk = Desk::open(&place, &[]).await;
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

/// Returns the stored default policy.
async fn kept(desk: &Desk) -> Value {
    serde_json::from_str(&desk.fetched("/api/retry-policy").await).unwrap()
}

/// S4-26: invalid values are marked at their field, and the second of two concurrent changes is rejected.
#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_shown_in_place_and_concurrent_changes_are_rejected() {
    let place = Place::new();
    let desk = Desk::open(&place, &[]).await;
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
    desk.shows("#policy > .says", "Someone else saved").await;
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

/// W17: the summary follows the form, whether filled by template, typing or rows, and shows the saved policy after
/// saving.
#[tokio::test(flavor = "multi_thread")]
async fn policy_summary_follows_the_form() {
    let place = Place::new();
    let desk = Desk::open(&place, &[]).await;
    desk.goto("/policies").await;
    let words = "[data-part=words]";
    desk.shows(words, "retried for up to 30 min").await;
    desk.shows(words, "built-in").await;
    let template = |name: &str| {
        format!(
            "(() => {{ const it = [...document.querySelectorAll('[data-fill]')].find((one) => one.innerText.includes('{name}')); it.click(); return true; }})()"
        )
    };
    desk.says(&template("Pipeline")).await;
    desk.shows(words, "delays of about 1 s, 2 s, 3 s").await;
    desk.shows(words, "not saved yet").await;
    type_into(&desk, "#maxRetries", "2").await;
    desk.shows(words, "Up to 3 attempts, with delays of about 1 s, 2 s;")
        .await;
    desk.shows(words, "Pipeline, changed").await;
    // A concurrent change by someone else does not change the summary of this form.
    let settings = "[policy]\nmaxRetries = 9\n";
    crate::gateway::by_user(&place, settings);
    place.run(&["exec", "--", "true"], "").told(0, &[]);
    type_into(&desk, "#backoffMultiplier", "-1").await;
    desk.shows(words, "Invalid").await;
    desk.shows(words, "backoffMultiplier").await;
    type_into(&desk, "#backoffMultiplier", "5").await;
    desk.shows(words, "delays of about 5 s, 10 s;").await;
    desk.press("#policy input[name=enabled]").await;
    desk.shows(words, "all failures are passed through").await;
    desk.press("#policy input[name=enabled]").await;
    desk.shows(words, "delays of about 5 s, 10 s;").await;
    desk.press("#policy button[type=submit]").await;
    desk.shows(
        "#policy > .says",
        "Someone else saved changes in the meantime",
    )
    .await;
    desk.shows("#policy > .says", "name: theirs: Resilient. Save again")
        .await;
    desk.shows(words, "delays of about 5 s, 10 s;").await;
    saved(&desk).await;
    desk.shows(words, "set here").await;
    desk.shows(words, "delays of about 5 s, 10 s;").await;
    desk.close().await;
}

/// Types into a field like a human, replacing its content.
async fn type_into(desk: &Desk, selector: &str, text: &str) {
    let select = format!(
        "(() => {{ const it = document.querySelector('{selector}'); it.focus(); it.select(); return true; }})()"
    );
    desk.says(&select).await;
    desk.keys(text).await;
}
