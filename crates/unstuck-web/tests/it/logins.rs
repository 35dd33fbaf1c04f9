//! Tests of browser logins with the link shown in the terminal.

use serde_json::json;
use unstuck_web::auth::PermissionScope;

use crate::ground::Ground;

/// Returns the cookie and the key of a browser that followed the link.
async fn logged_in(ground: &Ground, scope: PermissionScope) -> (String, String) {
    let link = ground.web.create_login_link(scope).unwrap();
    let (address, code) = link.split_once('#').unwrap();
    assert_eq!(address, format!("http://{}/login", ground.address));
    let reply = ground
        .ask("POST", "/api/login")
        .json(&json!({"code": code}))
        .send()
        .await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let cookie = reply.header("set-cookie");
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let cookie = cookie.split(';').next().unwrap().to_owned();
    (cookie, reply.json()["key"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn login_link_works_once() {
    let ground = Ground::new().await;
    let link = ground
        .web
        .create_login_link(PermissionScope::Admin)
        .unwrap();
    let body = json!({"code": link.split_once('#').unwrap().1});
    assert_eq!(
        ground
            .ask("POST", "/api/login")
            .json(&body)
            .send()
            .await
            .status,
        200
    );
    let again = ground.ask("POST", "/api/login").json(&body).send().await;
    assert_eq!(
        (again.status.as_u16(), again.header("set-cookie")),
        (401, "")
    );
}

/// Every server on this machine receives the cookies of this machine, and agents run servers: one that has seen the
/// cookie must not be able to use it for a change.
#[tokio::test]
async fn cookie_allows_changes_only_with_its_key_from_our_own_page() {
    let ground = Ground::filled().await;
    let (cookie, key) = logged_in(&ground, PermissionScope::Admin).await;
    let own = format!("http://{}", ground.address);
    let path = "/api/runs/r000000003/stop";
    let post = || ground.ask("POST", path).header("cookie", &cookie);
    assert_eq!(post().send().await.status, 403);
    assert_eq!(post().header("origin", &own).send().await.status, 403);
    assert_eq!(
        post().header("x-unstuck-key", &key).send().await.status,
        403
    );
    let wrong = post()
        .header("origin", &own)
        .header("x-unstuck-key", "guessed");
    assert_eq!(wrong.send().await.status, 403);
    let other = post()
        .header("origin", "http://127.0.0.1:3000")
        .header("x-unstuck-key", &key);
    assert_eq!(other.send().await.status, 403);
    assert!(ground.doer.done.lock().unwrap().is_empty());
    let right = post().header("origin", &own).header("x-unstuck-key", &key);
    assert_eq!(right.send().await.status, 202);
}

#[tokio::test]
async fn login_grants_remote_access_until_it_ends() {
    let ground = Ground::new().await;
    let (cookie, key) = logged_in(&ground, PermissionScope::Answer).await;
    let get = || {
        let asking = ground.ask("GET", "/api/runs").header("via", "x");
        asking
            .header("cookie", &format!("other=1; {cookie}"))
            .send()
    };
    assert_eq!(get().await.status, 200);
    let me = ground
        .ask("GET", "/api/me")
        .header("cookie", &cookie)
        .send()
        .await;
    assert_eq!(me.json()["scope"], "answer");
    let own = format!("http://{}", ground.address);
    let logout = ground.ask("POST", "/api/logout").header("cookie", &cookie);
    let logout = logout.header("origin", &own).header("x-unstuck-key", &key);
    assert_eq!(logout.send().await.status, 204);
    assert_eq!(get().await.status, 401);
}

#[tokio::test]
async fn cookie_of_a_stopped_server_is_ignored() {
    let ground = Ground::new().await;
    let name = format!("unstuck_{}=old", ground.address.port());
    let reply = ground
        .ask("GET", "/api/me")
        .header("cookie", &name)
        .send()
        .await;
    assert_eq!(
        (reply.status.as_u16(), &reply.json()["scope"]),
        (200, &serde_json::Value::Null)
    );
}

/// A token can be entered on the login page; the login takes its name and ends with it.
#[tokio::test]
async fn login_by_token_ends_when_the_token_is_revoked() {
    let ground = Ground::new().await;
    let login = |code: String| {
        let asking = ground.ask("POST", "/api/login");
        asking.json(&json!({ "code": code })).send()
    };
    assert_eq!(login("unstuck_guessed".into()).await.status, 401);
    let opened = login(ground.token(PermissionScope::Read)).await;
    assert_eq!(opened.json()["scope"], "read");
    let cookie = opened.header("set-cookie").split(';').next().unwrap();
    let me = || ground.ask("GET", "/api/me").header("cookie", cookie).send();
    assert_eq!(me().await.json()["name"], "test");
    ground.revoke_all();
    assert_eq!(me().await.json()["name"], serde_json::Value::Null);
}

/// W10: an ended login is reported as such and links back to the page.
#[tokio::test]
async fn ended_login_is_reported() {
    let ground = Ground::filled().await;
    let old = format!("unstuck_{}=old", ground.address.port());
    let page = ground.ask("GET", "/").header("cookie", &old);
    let page = page.header("accept", "text/html").send().await;
    assert!(
        page.body.contains("Your login has expired"),
        "{}",
        page.body
    );
    let stop = ground.ask("POST", "/api/runs/r000000003/stop");
    let stop = stop.header("cookie", &old).send().await;
    assert_eq!(stop.status, 401);
    assert!(
        stop.body.contains("your dashboard login has expired"),
        "{}",
        stop.body
    );
    let never = ground.get("/").await;
    assert!(!never.body.contains("Your login has expired"));
    let back = ground.get("/login?back=/sessions/r000000003-1").await;
    assert!(back.body.contains(r#"data-goto="/sessions/r000000003-1""#));
    let remote = |path: &str| {
        let asking = ground.ask("GET", path).header("via", "x");
        asking.header("accept", "text/html").send()
    };
    let led = remote("/runs?status=failed").await;
    assert_eq!(
        led.header("location"),
        "/login?back=%2Fruns%3Fstatus%3Dfailed"
    );
    let part = remote("/runs?part=runs").await;
    assert_eq!(part.status, 401, "an open page is not led away");
    let elsewhere = ground.get("/login?back=//evil.example").await;
    assert!(elsewhere.body.contains(r#"data-goto="/""#));
}
