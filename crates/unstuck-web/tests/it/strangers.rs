//! Tests of who gets access.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Extension;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use unstuck_network::PeerOwner;
use unstuck_web::auth::{PermissionScope, WebClientRateLimit, WebRequestRateLimits};

use crate::ground::Ground;

const ANSWER: &str = "/api/escalations/r000000002-q1/answer";

#[tokio::test]
async fn local_clients_can_read_and_need_a_token_to_change_anything() {
    let ground = Ground::filled().await;
    assert_eq!(ground.get("/api/runs").await.status, 200);
    let body = json!({"answer": "resolve"});
    let reply = ground.ask("POST", ANSWER).json(&body).send().await;
    assert_eq!(reply.status, 401);
    assert!(reply.header("www-authenticate").starts_with("Bearer"));
    let reply = ground
        .ask("POST", ANSWER)
        .token("unstuck_guessed")
        .json(&body)
        .send()
        .await;
    assert_eq!(reply.status, 401);
    assert_eq!(
        ground
            .post(PermissionScope::Read, ANSWER, body.clone())
            .await
            .status,
        403
    );
    assert_eq!(
        ground
            .post(PermissionScope::Answer, ANSWER, body)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn invalid_token_is_rejected_even_where_none_is_needed() {
    let ground = Ground::new().await;
    for value in ["Bearer unstuck_guessed", "Basic dTpw", "Bearer", "nonsense"] {
        let reply = ground
            .ask("GET", "/api/runs")
            .header("authorization", value)
            .send()
            .await;
        assert_eq!(reply.status, 401, "{value}");
    }
}

#[tokio::test]
async fn host_name_of_others_is_rejected() {
    let ground = Ground::new().await;
    for host in [
        "evil.example",
        "evil.example:4141",
        "127.0.0.1.evil.example",
    ] {
        let reply = ground
            .ask("GET", "/api/runs")
            .header("host", host)
            .send()
            .await;
        assert_eq!(reply.status, 403, "{host}");
    }
    let reply = ground
        .ask("GET", "/api/runs")
        .header("host", "localhost:1")
        .send()
        .await;
    assert_eq!(reply.status, 200);
    let token = ground.token(PermissionScope::Read);
    let named = ground
        .ask("GET", "/api/runs")
        .header("host", "box.lan")
        .token(&token);
    assert_eq!(named.send().await.status, 200);
}

#[tokio::test]
async fn pages_of_other_origins_are_rejected_even_with_a_token() {
    let ground = Ground::filled().await;
    let token = ground.token(PermissionScope::Admin);
    let own = format!("http://{}", ground.address);
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:3000",
        "http://localhost",
    ] {
        let reply = ground
            .ask("GET", "/api/runs")
            .header("origin", origin)
            .send()
            .await;
        assert_eq!(reply.status, 403, "{origin}");
        assert_eq!(reply.header("access-control-allow-origin"), "");
        let asking = ground
            .ask("POST", ANSWER)
            .token(&token)
            .header("origin", origin);
        assert_eq!(
            asking
                .json(&json!({"answer": "resolve"}))
                .send()
                .await
                .status,
            403
        );
    }
    assert_eq!(
        ground
            .ask("GET", "/api/runs")
            .header("origin", &own)
            .send()
            .await
            .status,
        200
    );
    let image = ground
        .ask("GET", "/api/runs")
        .header("sec-fetch-site", "cross-site");
    assert_eq!(
        image
            .header("sec-fetch-mode", "no-cors")
            .send()
            .await
            .status,
        403
    );
    let link = ground
        .ask("GET", "/api/runs")
        .header("sec-fetch-site", "cross-site");
    assert_eq!(
        link.header("sec-fetch-mode", "navigate")
            .send()
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn proxied_request_is_treated_as_remote() {
    let ground = Ground::new().await;
    let token = ground.token(PermissionScope::Read);
    for name in ["x-forwarded-for", "forwarded", "via"] {
        let reply = ground
            .ask("GET", "/api/runs")
            .header(name, "203.0.113.5")
            .send()
            .await;
        assert_eq!(reply.status, 401, "{name}");
        let with = ground
            .ask("GET", "/api/runs")
            .header(name, "203.0.113.5")
            .token(&token);
        assert_eq!(with.send().await.status, 200, "{name}");
    }
    let page = ground
        .ask("GET", "/")
        .header("via", "x")
        .header("accept", "text/html");
    let reply = page.send().await;
    assert_eq!(
        (reply.status.as_u16(), reply.header("location")),
        (303, "/login")
    );
}

/// A client without an address is treated as remote, so that a listener that forgets it opens no access.
#[tokio::test]
async fn client_with_unknown_address_needs_a_token() {
    let ground = Ground::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let router = unstuck_web::router(Arc::clone(&ground.web));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let token = ground.token(PermissionScope::Read);
    let url = format!("http://{address}/api/runs");
    assert_eq!(ground.ask_url("GET", &url).send().await.status, 401);
    assert_eq!(
        ground
            .ask_url("GET", &url)
            .token(&token)
            .send()
            .await
            .status,
        200
    );
    serving.abort();
}

/// M7: other users of this machine, and clients that cannot be told apart from them, need a token even to read.
#[tokio::test]
async fn loopback_access_depends_on_the_user() {
    let ground = Ground::filled().await;
    let token = ground.token(PermissionScope::Read);
    for owner in [PeerOwner::OtherUser(6666), PeerOwner::Unknown] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let service = unstuck_web::router(Arc::clone(&ground.web))
            .layer(Extension(owner))
            .into_make_service_with_connect_info::<SocketAddr>();
        let serving = tokio::spawn(async move { axum::serve(listener, service).await });
        for path in ["/api/runs", "/api/escalations", "/api/events", "/runs"] {
            let url = format!("http://{address}{path}");
            let reply = ground.ask_url("GET", &url).send().await;
            assert_eq!(reply.status, 401, "{owner:?} {path}");
            let reply = ground.ask_url("GET", &url).token(&token).begin().await;
            assert_eq!(reply.status(), 200, "{owner:?} {path}");
        }
        let page = ground.ask_url("GET", &format!("http://{address}/"));
        let page = page.header("accept", "text/html").send().await;
        assert_eq!(page.header("location"), "/login", "{owner:?}");
        serving.abort();
    }
}

/// L6: a host is rejected if one parser reads it as this machine and another as someone else's name.
#[tokio::test]
async fn ambiguous_host_is_rejected() {
    let ground = Ground::filled().await;
    let token = ground.token(PermissionScope::Admin);
    for hosts in [
        "host: [::1].evil.example\r\n",
        "host: 127.0.0.1:1@evil.example\r\n",
        "host: 127.0.0.1:80:80\r\n",
        "host: 127.0.0.1\r\nhost: 127.0.0.1\r\n",
        "host: localhost\r\nhost: evil.example\r\n",
    ] {
        for signed in ["", &format!("authorization: Bearer {token}\r\n")] {
            let request =
                format!("GET /api/runs HTTP/1.1\r\n{hosts}{signed}connection: close\r\n\r\n");
            let mut stream = TcpStream::connect(ground.address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).await.unwrap();
            assert!(reply.starts_with("HTTP/1.1 400 "), "{hosts}: {reply}");
        }
    }
}

fn rate(burst: u32) -> WebClientRateLimit {
    WebClientRateLimit {
        burst,
        per_second: 0.01,
    }
}

/// Each token has its own bucket, and local reads are not limited.
#[tokio::test]
async fn rate_limited_client_gets_the_retry_time() {
    let ground = Ground::with(|options| {
        options.rates = WebRequestRateLimits {
            here: rate(5),
            elsewhere: rate(5),
            ..WebRequestRateLimits::default()
        };
    })
    .await;
    let (busy, other) = (
        ground.token(PermissionScope::Read),
        ground.token(PermissionScope::Read),
    );
    let get = |token: &str| ground.ask("GET", "/api/health").token(token).send();
    for _ in 0..5 {
        assert_eq!(get(&busy).await.status, 200);
    }
    let reply = get(&busy).await;
    assert_eq!(reply.status, 429);
    let seconds: u64 = reply.header("retry-after").parse().unwrap();
    assert!((1..=100).contains(&seconds), "{seconds}");
    assert_eq!(reply.header("content-type"), "application/problem+json");
    assert_eq!(get(&other).await.status, 200);
    for _ in 0..20 {
        assert_eq!(ground.get("/api/health").await.status, 200);
    }
}

/// W2: a client with invalid tokens must wait, but no other client on the same machine.
#[tokio::test]
async fn invalid_tokens_do_not_affect_other_clients() {
    let ground = Ground::with(|options| options.rates.wrong = rate(3)).await;
    let wrong = || ground.ask("GET", "/api/runs").token("unstuck_guessed");
    for _ in 0..3 {
        assert_eq!(wrong().send().await.status, 401);
    }
    assert_eq!(wrong().send().await.status, 429);
    let token = ground.token(PermissionScope::Admin);
    let reply = ground.ask("GET", "/api/runs").token(&token).send().await;
    assert_eq!(reply.status, 200);
    assert_eq!(ground.get("/api/runs").await.status, 200);
    let code = ground
        .web
        .create_login_link(PermissionScope::Answer)
        .unwrap();
    let login = |code: &str| {
        let body = json!({ "code": code });
        ground.ask("POST", "/api/login").json(&body).send()
    };
    assert_eq!(login("guessed").await.status, 429);
    let code = code.split_once('#').unwrap().1;
    assert_eq!(login(code).await.status, 200, "the right code is good");
}

/// A human who opens a page gets an HTML page even if access is denied.
#[tokio::test]
async fn people_get_an_html_page_when_access_is_denied() {
    let ground = Ground::with(|options| options.rates.wrong = rate(1)).await;
    let page = |status: u16, host: &'static str| {
        let asking = ground.ask("GET", "/").header("accept", "text/html,*/*");
        let asking = asking.header("host", host).token("unstuck_guessed");
        async move {
            let reply = asking.send().await;
            assert_eq!(reply.status, status);
            assert!(reply.header("content-type").starts_with("text/html"));
            reply
        }
    };
    page(401, "localhost").await;
    let too_many = page(429, "localhost").await;
    assert!(!too_many.header("retry-after").is_empty());
    let foreign = ground.ask("GET", "/").header("accept", "text/html");
    let foreign = foreign.header("host", "evil.example").send().await;
    assert_eq!(foreign.status, 403);
    assert!(foreign.header("content-type").starts_with("text/html"));
}

#[tokio::test]
async fn revoked_token_is_rejected() {
    let ground = Ground::new().await;
    let token = ground.token(PermissionScope::Read);
    let get = || ground.ask("GET", "/api/me").token(&token).send();
    assert_eq!(get().await.json()["scope"], "read");
    ground.revoke_all();
    assert_eq!(get().await.status, 401);
}

/// W2: an agent that keeps sending invalid tokens locks nobody out and is reported.
#[tokio::test]
async fn repeated_invalid_tokens_are_shown_on_every_page_and_reported() {
    let ground = Ground::filled().await;
    let mut reports = ground.web.rejected_tokens();
    let wrong = || ground.ask("GET", "/api/runs").token("unstuck_revoked");
    wrong().send().await;
    let page = ground.get("/runs").await.body;
    assert!(!page.contains("invalid token"), "one is a typing error");
    for _ in 1..100 {
        wrong().send().await;
    }
    for path in ["/", "/inbox", "/runs", "/settings", "/runs?part=banner"] {
        let page = ground.get(path).await.body;
        let told = "100 requests with an invalid token from 127.0.0.1 (this machine)";
        assert!(page.contains(told), "{path}: {page}");
    }
    let mut counts = Vec::new();
    while let Ok(report) = reports.try_recv() {
        counts.push(report.count);
    }
    assert_eq!(counts, [1, 10, 100]);
    let token = ground.token(PermissionScope::Answer);
    let body = json!({"answer": "resolve"});
    let right = ground.ask("POST", ANSWER).token(&token).json(&body);
    assert_eq!(right.send().await.status, 200);
}
