//! Tests that all errors use problem details.

use serde_json::json;
use unstuck_web::auth::PermissionScope;

use crate::ground::{Ground, Reply};

fn is_problem(reply: &Reply, status: u16, path: &str) {
    assert_eq!(reply.status, status, "{path}: {}", reply.body);
    assert_eq!(
        reply.header("content-type"),
        "application/problem+json",
        "{path}"
    );
    let problem = reply.json();
    assert_eq!(
        (&problem["status"], &problem["instance"]),
        (&status.into(), &path.into())
    );
    assert!(
        problem["type"]
            .as_str()
            .unwrap()
            .starts_with("urn:unstuck:problem:")
    );
    for key in ["title", "detail"] {
        assert!(!problem[key].as_str().unwrap().is_empty(), "{problem}");
    }
}

#[tokio::test]
async fn missing_resources_and_invalid_requests_return_problems() {
    let ground = Ground::filled().await;
    for (path, status) in [
        ("/api/nothing", 404),
        ("/api", 404),
        ("/api/runs/none", 404),
        ("/api/sessions/none", 404),
        ("/api/sessions/r000000001-7", 404),
        ("/api/escalations/none", 404),
        ("/api/runs/r000000001/attempts/first", 400),
        ("/api/runs/%ff", 400),
    ] {
        is_problem(&ground.get(path).await, status, path);
    }
    for query in [
        "limit=0",
        "limit=501",
        "limit=x",
        "status=lost",
        "kind=none2",
        "since=soon",
        "what=1",
        "after=x",
    ] {
        let reply = ground.get(&format!("/api/runs?{query}")).await;
        is_problem(&reply, 400, "/api/runs");
    }
}

#[tokio::test]
async fn unsupported_method_returns_a_problem_and_the_allowed_methods() {
    let ground = Ground::new().await;
    let token = ground.token(PermissionScope::Admin);
    let reply = ground
        .ask("PATCH", "/api/retry-policy")
        .token(&token)
        .send()
        .await;
    is_problem(&reply, 405, "/api/retry-policy");
    assert!(reply.header("allow").contains("PUT"), "{reply:?}");
}

#[tokio::test]
async fn invalid_body_returns_a_problem() {
    let ground = Ground::filled().await;
    let token = ground.token(PermissionScope::Answer);
    let path = "/api/sessions/r000000002-1/retry";
    let post = || ground.ask("POST", path).token(&token);
    is_problem(
        &post().text("application/json", "{").send().await,
        400,
        path,
    );
    is_problem(&post().text("text/plain", "{}").send().await, 415, path);
    is_problem(&post().json(&json!({"words": 5})).send().await, 422, path);
    let long = json!({"words": "x".repeat(1 << 20)});
    is_problem(&post().json(&long).send().await, 413, path);
}

#[tokio::test]
async fn every_response_has_security_headers() {
    let ground = Ground::new().await;
    for path in ["/api/health", "/api/nothing", "/nothing"] {
        let reply = ground.get(path).await;
        let policy = reply.header("content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{path}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("referrer-policy"), "no-referrer");
        assert_eq!(reply.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(reply.header("cache-control"), "no-store");
    }
}
