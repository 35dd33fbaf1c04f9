//! Tests of logging in with a link or a token, and of logging out.

use super::Desk;
use crate::Place;
use crate::gateway::Serving;
use crate::web::token;

/// Text on every page of a viewer who is not logged in.
const READS: &str = "document.body.innerText.includes('Read-only access')";

/// S3-44: the printed link logs in one browser once; later visitors are told what to do.
#[tokio::test(flavor = "multi_thread")]
async fn printed_link_logs_in_once() {
    let place = Place::new();
    let mut desk = Desk::reading(&place, &[]).await;
    desk.goto("/").await;
    assert_eq!(desk.says(READS).await, true);
    let link = desk.serving.link();
    desk.come(&link).await;
    assert_eq!(desk.says(READS).await, false);
    desk.press("#logout button").await;
    desk.until("location.pathname === '/login'").await;
    assert_eq!(desk.says("localStorage.length").await, 0);
    desk.press("a.button[href='/']").await;
    desk.until(&format!("location.pathname === '/' && {READS}"))
        .await;
    desk.browser.page.goto(&link).await.unwrap();
    desk.shows("#login-says", "run `unstuck token link` to get a new link")
        .await;
    desk.picture("login-refused").await;
    desk.browser.close().await;
}

/// S3-44: a token can be entered, names the author of an answer, and is rejected once revoked.
#[tokio::test(flavor = "multi_thread")]
async fn entered_token_works_until_it_is_revoked() {
    let place = Place::new();
    let secret = token(&place, "read");
    let desk = Desk::reading(&place, &["--quiet"]).await;
    desk.browser.page.goto(&desk.url("/login")).await.unwrap();
    desk.fill("#code", "unstuck_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
        .await;
    desk.press("#login button").await;
    desk.shows("#login .says", "expired code or token").await;
    assert_eq!(desk.says("location.search").await, "", "it is in no log");
    desk.fill("#code", &secret).await;
    desk.press("#login button").await;
    desk.until("location.pathname === '/' && document.querySelector('#logout') !== null")
        .await;
    let me = desk.fetched("/api/me").await;
    assert_eq!(me, r#"{"scope":"read","name":"laptop"}"#);
    let listed = place.json(&["token", "list", "--json"], "");
    let revoke = ["token", "revoke", listed[0]["id"].as_str().unwrap()];
    assert_eq!(place.run(&revoke, "").code, 0);
    desk.goto("/").await;
    assert_eq!(
        desk.says("document.querySelector('#logout')").await,
        serde_json::Value::Null
    );
    desk.close().await;
}

/// A read-only viewer can log out, too.
#[tokio::test(flavor = "multi_thread")]
async fn read_only_viewer_can_log_out() {
    let place = Place::new();
    let desk = Desk::reading(&place, &["--quiet"]).await;
    let listen = format!("127.0.0.1:{}", desk.serving.port);
    let link = ["token", "link", "--scope", "read", "--listen", &listen];
    desk.come(place.run(&link, "").stdout.trim()).await;
    desk.press("#logout button").await;
    desk.until("location.pathname === '/login'").await;
    desk.close().await;
}

/// W9: a new link is opened in the tab that still shows why the old one did not work.
#[tokio::test(flavor = "multi_thread")]
async fn new_link_logs_in_the_tab_that_shows_the_login_page() {
    let place = Place::new();
    let desk = Desk::reading(&place, &["--quiet"]).await;
    let login = desk.url("/login?back=/runs%3Fstatus%3Dfailed");
    desk.browser
        .page
        .goto(&format!("{login}#expired"))
        .await
        .unwrap();
    desk.shows("#login-says", "run `unstuck token link` to get a new link")
        .await;
    assert_eq!(desk.says("location.hash").await, "", "the code is gone");
    desk.says("window.isSameTab = true").await;
    let listen = format!("127.0.0.1:{}", desk.serving.port);
    let link = place
        .run(&["token", "link", "--listen", &listen], "")
        .stdout;
    let (_, code) = link.trim().split_once('#').unwrap();
    // Only the fragment after `#` differs, so the browser does not reload the page.
    desk.browser
        .page
        .goto(&format!("{login}#{code}"))
        .await
        .unwrap();
    desk.until("location.pathname === '/runs' && location.search === '?status=failed'")
        .await;
    desk.until("document.querySelector('#logout') !== null")
        .await;
    desk.close().await;
}

/// W10: logins survive a restart of the server, and an ended login leads back to the same page.
#[tokio::test(flavor = "multi_thread")]
async fn login_survives_a_restart_and_ended_login_leads_back() {
    let place = Place::new();
    let mut desk = Desk::reading(&place, &["--quiet"]).await;
    desk.goto("/runs?status=failed").await;
    desk.press("[data-part=banner] a[data-login]").await;
    log_in(&desk, &token(&place, "answer")).await;
    let port = desk.serving.port.clone();
    desk.serving.end();
    desk.until("document.getElementById('live').dataset.state === 'lost'")
        .await;
    desk.serving = Serving::start_at(&place, &port, &["--quiet"], &[]);
    desk.until("document.getElementById('live').dataset.state === 'live'")
        .await;
    desk.goto("/runs?status=failed").await;
    assert_eq!(desk.says(READS).await, false, "still logged in");
    let listed = place.json(&["token", "list", "--json"], "");
    let revoke = ["token", "revoke", listed[0]["id"].as_str().unwrap()];
    assert_eq!(place.run(&revoke, "").code, 0);
    desk.shows("[data-part=banner]", "Your login has expired")
        .await;
    desk.picture("login-ended").await;
    desk.press("[data-part=banner] a[data-login]").await;
    log_in(&desk, &token(&place, "answer")).await;
    assert_eq!(desk.says(READS).await, false);
    desk.close().await;
}

/// Enters a token and waits for the previous page.
async fn log_in(desk: &Desk, secret: &str) {
    desk.until("location.pathname === '/login'").await;
    desk.fill("#code", secret).await;
    desk.press("#login button").await;
    desk.until("location.pathname === '/runs' && location.search === '?status=failed' && document.getElementById('live')?.dataset.state === 'live'")
        .await;
}
