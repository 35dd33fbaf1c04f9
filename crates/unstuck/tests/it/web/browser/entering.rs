//! Coming in by a link or a token, and going out again.

use super::Desk;
use crate::Place;
use crate::web::token;

/// What stands on every page of somebody who has not logged in.
const READS: &str = "document.body.innerText.includes('You can only read')";

/// S3-44: the printed link logs in one browser once; whoever comes later by it is told what to do.
#[tokio::test(flavor = "multi_thread")]
async fn the_printed_link_logs_in_once() {
    let place = Place::new();
    let Some(mut desk) = Desk::reading(&place, &[]).await else {
        return;
    };
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
    desk.shows("#login-says", "`unstuck token link` makes a new link")
        .await;
    desk.picture("login-refused").await;
    desk.browser.close().await;
}

/// S3-44: a token can be typed, says who answered, and lets nobody in once it was taken back.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_typed_and_counts_until_it_is_taken_back() {
    let place = Place::new();
    let secret = token(&place, "read");
    let Some(desk) = Desk::reading(&place, &["--quiet"]).await else {
        return;
    };
    desk.browser.page.goto(&desk.url("/login")).await.unwrap();
    desk.fill("#code", "unstuck_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
        .await;
    desk.press("#login button").await;
    desk.shows("#login .says", "not good").await;
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

/// Who may only look can leave, too.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_only_reads_can_log_out() {
    let place = Place::new();
    let Some(desk) = Desk::reading(&place, &["--quiet"]).await else {
        return;
    };
    let listen = format!("127.0.0.1:{}", desk.serving.port);
    let link = ["token", "link", "--scope", "read", "--listen", &listen];
    desk.come(place.run(&link, "").stdout.trim()).await;
    desk.press("#logout button").await;
    desk.until("location.pathname === '/login'").await;
    desk.close().await;
}
