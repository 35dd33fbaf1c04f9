//! Tests of the dashboard in Chromium: every page in every layout and color scheme, and the actions on it.

use std::time::Duration;

use serde_json::json;
use unstuck_core::event::RunOutcome;
use unstuck_core::{FailureKind, Timestamp};
use unstuck_store::EscalationFilter;
use unstuck_web::auth::PermissionScope;

use crate::chromium::{Chromium, LOOKS, Look};
use crate::ground::Ground;
use crate::relay::Relay;
use crate::samples;

fn pages() -> Vec<(&'static str, String)> {
    let (one, two) = (samples::run(1), samples::run(2));
    vec![
        ("now", "/".into()),
        ("runs", "/runs".into()),
        ("run", format!("/runs/{two}")),
        (
            "session",
            format!("/sessions/{}", one.session_id(1).as_str()),
        ),
        ("inbox", "/inbox".into()),
        ("question", format!("/inbox/{}", samples::question_id(&two))),
        ("failures", "/failures".into()),
        ("policies", "/policies".into()),
        ("settings", "/settings".into()),
        ("login", "/login".into()),
    ]
}

/// Starts a server with enough history for every page to show something.
async fn busy() -> Ground {
    let ground = Ground::filled().await;
    for number in 10..18 {
        let run = samples::run(number);
        let mut events = samples::recovered(&run, "/home/me/shop");
        if number % 3 == 0 {
            events.truncate(2);
            events.push(samples::failed(
                &run,
                1,
                FailureKind::Timeout,
                "timed out after 600 s",
            ));
            events.push(samples::finished(RunOutcome::Failed));
        }
        samples::write(&ground.store, &run, events).await;
    }
    ground
}

async fn log_in(browser: &Chromium, ground: &Ground, scope: PermissionScope) {
    browser
        .page
        .goto(&ground.web.create_login_link(scope).unwrap())
        .await
        .unwrap();
    browser
        .until("location.pathname === '/' && document.readyState === 'complete'")
        .await;
}

async fn open(browser: &Chromium, ground: &Ground, path: &str) {
    browser
        .page
        .goto(&format!("http://{}{path}", ground.address))
        .await
        .unwrap();
    browser.until("document.readyState === 'complete' && document.documentElement.classList.contains('scripted')").await;
}

/// S4-32: every page on desktop and phone, light and dark, has no errors, no sideways scrolling and no accessibility
/// problems.
#[tokio::test(flavor = "multi_thread")]
async fn every_page_works_on_desktop_and_phone_light_and_dark() {
    let browser = Chromium::start().await;
    let ground = busy().await;
    log_in(&browser, &ground, PermissionScope::Admin).await;
    let mut faults = Vec::new();
    for (name, path) in pages() {
        for look in LOOKS {
            browser.look(look).await;
            open(&browser, &ground, &path).await;
            let found = browser.faults().await;
            faults.extend(
                found
                    .iter()
                    .map(|one| format!("{name} {}: {one}", look.name)),
            );
            browser.picture(&format!("{name}-{}", look.name)).await;
        }
    }
    browser.close().await;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Pages are painted within 100 ms on an idle machine; here other tests run at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn pages_are_painted_quickly() {
    let browser = Chromium::start().await;
    let ground = busy().await;
    browser.look(LOOKS[0]).await;
    let mut slow = Vec::new();
    for (name, path) in pages() {
        let mut best = f64::MAX;
        for _ in 0..3 {
            open(&browser, &ground, &path).await;
            browser
                .until("performance.getEntriesByName('first-contentful-paint').length > 0")
                .await;
            let paint = browser
                .says("performance.getEntriesByName('first-contentful-paint')[0].startTime")
                .await;
            best = best.min(paint.as_f64().unwrap());
        }
        eprintln!("{name}: first paint after {best:.0} ms");
        if best > 500.0 {
            slow.push(name);
        }
    }
    browser.close().await;
    assert!(slow.is_empty(), "{slow:?}");
}

/// S4-04, S4-32: changes appear without a reload, and an escalation is answered with a click.
#[tokio::test(flavor = "multi_thread")]
async fn new_escalation_appears_and_is_answered_with_a_click() {
    let browser = Chromium::start().await;
    let ground = Ground::new().await;
    log_in(&browser, &ground, PermissionScope::Answer).await;
    open(&browser, &ground, "/inbox").await;
    browser.until(&is("live")).await;
    let run = samples::run(2);
    samples::write(&ground.store, &run, samples::asking(&run, "/home/me/shop")).await;
    browser.until("document.title.startsWith('(1)')").await;
    browser.click(".needs .button").await;
    browser
        .until("location.pathname.startsWith('/inbox/')")
        .await;
    browser.click("button[value=resolve]").await;
    browser
        .until("document.body.innerText.includes('resolved manually')")
        .await;
    let waiting = ground
        .store
        .escalations(&EscalationFilter::default())
        .await
        .unwrap();
    assert_eq!(waiting.len(), 0);
    assert_eq!(browser.says("window.wrong").await, json!([]));
    browser.close().await;
}

/// S4-06, S4-07, S4-11, S4-13: the dialogs show the prompt and the cost before they send the request.
#[tokio::test(flavor = "multi_thread")]
async fn session_is_retried_with_context_and_switched_to_another_model() {
    let browser = Chromium::start().await;
    let ground = Ground::filled().await;
    log_in(&browser, &ground, PermissionScope::Answer).await;
    let run = samples::run(2);
    let session = run.session_id(1);
    open(
        &browser,
        &ground,
        &format!("/sessions/{}", session.as_str()),
    )
    .await;
    browser
        .look(Look {
            name: "dialog",
            ..LOOKS[0]
        })
        .await;
    browser.click("[data-dialog=retry]").await;
    browser
        .until("document.getElementById('retry-prompt')?.value.includes('fix the tests')")
        .await;
    browser.picture("dialog-retry").await;
    browser.click("#retry button[type=submit]").await;
    browser
        .until("!document.getElementById('retry').open")
        .await;
    browser.click("[data-dialog=escalate]").await;
    browser
        .until("document.getElementById('escalate').innerText.includes('Estimated cost')")
        .await;
    browser.picture("dialog-escalate").await;
    browser.click("#escalate button[type=submit]").await;
    browser
        .until("!document.getElementById('escalate').open")
        .await;
    let done = ground.doer.done.lock().unwrap().join("\n");
    assert!(
        done.contains("\"withContext\":true") && done.contains("fix the tests"),
        "{done}"
    );
    let story = ground.store.timeline(&run).await.unwrap().unwrap();
    let moved = story
        .attempts
        .iter()
        .any(|attempt| attempt.model_switch.is_some());
    assert!(moved || !story.model_switches.is_empty(), "{story:?}");
    assert_eq!(browser.says("window.wrong").await, json!([]));
    browser.close().await;
}

/// S4-16: a policy is changed on its page, which also shows invalid values.
#[tokio::test(flavor = "multi_thread")]
async fn policy_is_changed_on_its_page() {
    let browser = Chromium::start().await;
    let ground = Ground::filled().await;
    log_in(&browser, &ground, PermissionScope::Admin).await;
    open(&browser, &ground, "/policies").await;
    browser
        .says("document.getElementById('maxRetries').value = '7'")
        .await;
    browser.click("#policy button[type=submit]").await;
    browser
        .until("document.querySelector('#policy .says').innerText.startsWith('Saved')")
        .await;
    assert_eq!(ground.json("/api/retry-policy").await["maxRetries"], 7);
    browser
        .says("document.getElementById('maxElapsed').removeAttribute('pattern')")
        .await;
    browser
        .says("document.getElementById('maxElapsed').value = 'soon'")
        .await;
    browser.click("#policy button[type=submit]").await;
    browser
        .until("document.getElementById('maxElapsed-wrong') !== null")
        .await;
    browser.picture("policy-refused").await;
    browser.close().await;
}

/// A viewer without a token can read everything and sees why buttons are disabled.
#[tokio::test(flavor = "multi_thread")]
async fn buttons_without_a_token_show_why_they_are_disabled() {
    let browser = Chromium::start().await;
    let ground = Ground::filled().await;
    open(
        &browser,
        &ground,
        &format!("/inbox/{}", samples::question_id(&samples::run(2))),
    )
    .await;
    let refused = "[...document.querySelectorAll('button[name=answer]')].every((one) => one.disabled && one.title)";
    assert_eq!(browser.says(refused).await, json!(true));
    browser.picture("question-read-only").await;
    browser.close().await;
}

/// A lost connection is shown, and everything is up to date after it is restored.
#[tokio::test(flavor = "multi_thread")]
async fn lost_connection_is_shown_and_restored_automatically() {
    let browser = Chromium::start().await;
    let ground = Ground::filled().await;
    let relay = Relay::to(ground.address).await;
    let url = format!("http://{}/", relay.address);
    browser.page.goto(&url).await.unwrap();
    browser.until(&is("live")).await;
    relay.cut();
    browser.until(&is("lost")).await;
    let run = samples::run(7);
    samples::write(&ground.store, &run, samples::asking(&run, "/home/me/shop")).await;
    relay.mend();
    browser.until(&is("live")).await;
    browser.until("document.title.startsWith('(2)')").await;
    browser.close().await;
}

/// W2: if events arrive but the page cannot be refreshed, the page is not shown as live.
#[tokio::test(flavor = "multi_thread")]
async fn page_that_cannot_be_refreshed_is_not_shown_as_live() {
    let browser = Chromium::start().await;
    let ground = Ground::filled().await;
    open(&browser, &ground, "/inbox").await;
    browser.until(&is("live")).await;
    let blocked = |urls: &[&str]| json!({ "urls": urls });
    browser.cdp("Network.enable", json!({})).await;
    browser
        .cdp("Network.setBlockedURLs", blocked(&["*part=*"]))
        .await;
    let run = samples::run(7);
    samples::write(&ground.store, &run, samples::asking(&run, "/home/me/shop")).await;
    browser.until(&is("lost")).await;
    let says = "document.getElementById('live').innerText";
    assert_eq!(
        browser.says(says).await,
        "Out of date: cannot reach the server"
    );
    assert_eq!(
        browser.says("document.title.startsWith('(1)')").await,
        true,
        "it shows what it showed before"
    );
    browser.cdp("Network.setBlockedURLs", blocked(&[])).await;
    browser.until(&is("live")).await;
    browser.until("document.title.startsWith('(2)')").await;
    browser.close().await;
}

/// W10: a remote viewer sees no new data without a login; the open page shows this with a link to log in.
#[tokio::test(flavor = "multi_thread")]
async fn open_page_shows_that_its_login_has_ended() {
    let browser = Chromium::start().await;
    let ground = Ground::filled().await;
    browser.cdp("Network.enable", json!({})).await;
    let through_a_proxy = json!({"headers": {"Via": "1.1 proxy"}});
    browser
        .cdp("Network.setExtraHTTPHeaders", through_a_proxy)
        .await;
    let secret = ground.token(PermissionScope::Answer);
    let page = format!("http://{}/runs?status=failed", ground.address);
    browser.page.goto(&page).await.unwrap();
    browser.until("location.pathname === '/login'").await;
    let typed = format!("document.getElementById('code').value = '{secret}'");
    browser.says(&typed).await;
    browser.click("#login button").await;
    let is_back = "location.pathname === '/runs' && location.search === '?status=failed'";
    browser.until(is_back).await;
    browser.until(&is("live")).await;
    ground.revoke_all();
    browser.until(&is("lost")).await;
    browser
        .until("document.getElementById('live').textContent === 'Your login has expired Log in'")
        .await;
    browser.click("#live a").await;
    browser.until("location.pathname === '/login' && new URLSearchParams(location.search).get('back') === '/runs?status=failed'").await;
    browser.close().await;
}

/// W2: repeated invalid tokens are shown and lock nobody out.
#[tokio::test(flavor = "multi_thread")]
async fn repeated_invalid_tokens_are_shown_and_lock_nobody_out() {
    let browser = Chromium::start().await;
    let ground = Ground::filled().await;
    log_in(&browser, &ground, PermissionScope::Answer).await;
    let question = samples::question_id(&samples::run(2));
    open(&browser, &ground, &format!("/inbox/{question}")).await;
    for _ in 0..60 {
        let stale = ground.ask("GET", "/api/runs").token("unstuck_revoked");
        let status = stale.send().await.status.as_u16();
        assert!([401, 429].contains(&status), "{status}");
    }
    browser
        .until("document.querySelector('[data-part=banner]').innerText.includes('60 requests with an invalid token from 127.0.0.1 (this machine)')")
        .await;
    let faults = browser.faults().await;
    assert!(faults.is_empty(), "{faults:#?}");
    browser.picture("wrong-tokens").await;
    browser.click("button[value=resolve]").await;
    browser
        .until("document.body.innerText.includes('resolved manually')")
        .await;
    browser.close().await;
}

/// Returns a script that checks the connection state shown by the page.
fn is(state: &str) -> String {
    format!("document.getElementById('live')?.dataset.state === '{state}'")
}

/// W15: timestamps are shown in the zone of the browser, with date and zone.
#[tokio::test(flavor = "multi_thread")]
async fn timestamps_are_shown_in_the_browsers_time_zone() {
    const TIMES: &str = "[...document.querySelectorAll('time[datetime]')].map((it) => [it.getAttribute('datetime'), 'clock' in it.dataset ? it.textContent : it.title.replace(/^since /, ''), 'clock' in it.dataset])";
    let browser = Chromium::start().await;
    let ground = busy().await;
    // Half an hour off, and on another day than UTC for the last hours of each day.
    let zone = json!({"timezoneId": "Asia/Kolkata"});
    browser.cdp("Emulation.setTimezoneOverride", zone).await;
    let locale = json!({"locale": "en-US"});
    browser.cdp("Emulation.setLocaleOverride", locale).await;
    let mut kinds = (0, 0);
    for (name, path) in pages() {
        open(&browser, &ground, &path).await;
        let shown = browser.says(TIMES).await;
        for one in shown.as_array().unwrap() {
            let at: Timestamp = one[0].as_str().unwrap().parse().unwrap();
            let there = at.after(Duration::from_secs(5 * 3600 + 1800)).to_string();
            let expected = format!("{} {} GMT+5:30", &there[..10], &there[11..19]);
            assert_eq!(one[1], json!(expected), "{name}");
            if one[2] == json!(true) {
                kinds.0 += 1;
            } else {
                kinds.1 += 1;
            }
        }
    }
    browser.close().await;
    assert!(kinds.0 > 0 && kinds.1 > 0, "{kinds:?}");
}
