//! Tests of reading without a login, script, mouse or data.

use serde_json::json;

use super::Desk;
use crate::Place;
use crate::gateway::until;
use crate::web::asking;

const EXEC: [&str; 5] = ["exec", "--", "claude", "-p", "fix the tests"];

/// A viewer without a token can read everything, and every button states why it is disabled.
#[tokio::test(flavor = "multi_thread")]
async fn viewer_without_a_login_can_read_everything_and_press_nothing() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    let desk = Desk::reading(&place, &["--quiet"]).await;
    let run = place.json(&["runs", "--json"], "")[0]["id"].clone();
    let question = place.json(&["inbox", "--json"], "")[0]["id"].clone();
    let (run, question) = (run.as_str().unwrap(), question.as_str().unwrap());
    let changes = "[...document.querySelectorAll('main button, main input, main select, main textarea')].filter((one) => !one.closest('form[method=get]') && !one.hidden && !one.closest('dialog'))";
    for (path, text) in [
        ("/".to_owned(), "Not logged in"),
        (format!("/runs/{run}"), "fix the tests"),
        (format!("/sessions/{run}-1"), "Not logged in"),
        (format!("/inbox/{question}"), "Not logged in"),
        ("/policies".to_owned(), "Requires the admin scope"),
        ("/settings".to_owned(), "Claude Code"),
    ] {
        desk.goto(&path).await;
        desk.shows("#main", text).await;
        desk.shows(".banner", "Read-only access").await;
        let pressed = format!(
            "{changes}.filter((one) => !one.matches(':disabled') && !one.dataset.fill).map((one) => one.outerHTML)"
        );
        assert_eq!(desk.says(&pressed).await, json!([]), "{path}");
    }
    desk.picture("read-only").await;
    // Requests are rejected regardless of the buttons.
    let path = format!("/api/escalations/{question}/answer");
    let refused = desk.posted(&path, json!({"answer": "abort"})).await;
    assert_eq!(refused, 401);
    desk.close().await;
}

/// Missing pages say so and link back.
#[tokio::test(flavor = "multi_thread")]
async fn missing_page_links_back() {
    let place = Place::new();
    let desk = Desk::open(&place, &[]).await;
    for path in [
        "/nowhere",
        "/runs/nowhere",
        "/sessions/nowhere-1",
        "/inbox/nowhere",
    ] {
        desk.browser.page.goto(&desk.url(path)).await.unwrap();
        desk.shows("h1", "Not found").await;
        desk.shows("#main", "not found").await;
        assert_eq!(
            desk.says("document.body.innerText.includes('/api/')").await,
            false
        );
    }
    desk.picture("not-found").await;
    desk.press("a.button[href='/runs']").await;
    desk.until("location.pathname === '/runs'").await;
    desk.browser.page.goto(&desk.url("/nowhere")).await.unwrap();
    desk.press("a.button[href='/']").await;
    desk.until("location.pathname === '/'").await;
    desk.close().await;
}

/// Everything can be read without script, and the page states what does not work.
#[tokio::test(flavor = "multi_thread")]
async fn pages_are_readable_without_script() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    let desk = Desk::reading(&place, &["--quiet"]).await;
    let off = json!({"value": true});
    desk.browser
        .cdp("Emulation.setScriptExecutionDisabled", off)
        .await;
    let run = place.json(&["runs", "--json"], "")[0]["id"].clone();
    let session = format!("/sessions/{}-1", run.as_str().unwrap());
    for (path, text) in [
        ("/", "Not logged in"),
        ("/inbox", "Not logged in"),
        ("/runs", "fix the tests"),
        (&session, "Not logged in"),
        ("/failures", "auth_required"),
        ("/policies", "4 attempts"),
        ("/settings", "Claude Code"),
        ("/login", "Log in"),
    ] {
        desk.browser.page.goto(&desk.url(path)).await.unwrap();
        let source = desk.browser.page.source().await.unwrap();
        assert!(source.contains(text), "{text} on {path}");
        assert!(source.contains("JavaScript is disabled"), "{path}");
    }
    // A token entered without script appears in no URL.
    let page = &desk.browser.page;
    let field = page.find(fantoccini::Locator::Css("#code")).await.unwrap();
    field
        .send_keys("unstuck_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\u{e007}")
        .await
        .unwrap();
    let url = page.current_url().await.unwrap();
    assert_eq!(url.query(), None);
    desk.browser.close().await;
}

/// An escalation is answered with the keyboard alone: Tab to the button, then Enter.
#[tokio::test(flavor = "multi_thread")]
async fn escalation_is_answered_with_the_keyboard() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    place.write("login", "");
    let desk = Desk::open(&place, &[]).await;
    desk.goto("/").await;
    desk.keys("gi").await;
    desk.until("location.pathname === '/inbox'").await;
    desk.tab_to("a.button[href^='/inbox/']").await;
    desk.keys("\u{e007}").await;
    desk.until("location.pathname.startsWith('/inbox/') && document.readyState === 'complete'")
        .await;
    desk.tab_to("#note").await;
    desk.keys("as you like").await;
    desk.tab_to("button[value=resolve]").await;
    desk.picture("focus").await;
    desk.keys("\u{e007}").await;
    desk.shows("[data-part=asked]", "as you like").await;
    until("it goes on", || {
        // The prompt that continues the conversation has several lines.
        (place.lines("calls").len() >= 2).then_some(())
    });
    desk.close().await;
}
