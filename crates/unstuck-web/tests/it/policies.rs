//! Tests of retry policies over the API, including concurrent changes.

use serde_json::json;
use unstuck_web::auth::PermissionScope;

use crate::ground::{Ground, Reply};

const DEFAULT: &str = "/api/retry-policy";

async fn put(ground: &Ground, path: &str, etag: Option<&str>, body: serde_json::Value) -> Reply {
    let token = ground.token(PermissionScope::Admin);
    let asking = ground.ask("PUT", path).token(&token).json(&body);
    let asking = match etag {
        Some(etag) => asking.header("if-match", etag),
        None => asking,
    };
    asking.send().await
}

/// S4-26, S4-18: the default policy is shown and set with the specified names.
#[tokio::test]
async fn default_policy_is_shown_and_set() {
    let ground = Ground::new().await;
    let before = ground.get(DEFAULT).await;
    assert_eq!(
        (
            &before.json()["maxRetries"],
            before.header("x-unstuck-origin")
        ),
        (&3.into(), "built_in")
    );
    let body = json!({"template": "patient", "maxRetries": 7, "retryableErrors": ["rate_limit"]});
    let reply = put(&ground, DEFAULT, Some(before.header("etag")), body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let after = ground.get(DEFAULT).await;
    assert_eq!(
        (&after.json()["maxRetries"], &after.json()["backoffBase"]),
        (&7.into(), &5.0.into())
    );
    assert_eq!(after.header("etag"), reply.header("etag"));
    assert_eq!(after.header("x-unstuck-origin"), "set");
    assert_ne!(after.header("etag"), before.header("etag"));
}

/// S4-27, S4-16: a project has its own policy.
#[tokio::test]
async fn project_has_its_own_policy() {
    let ground = Ground::filled().await;
    let id = unstuck_web::model::project_id("/home/me/shop");
    let path = format!("/api/projects/{id}/retry-policy");
    let before = ground.get(&path).await;
    let reply = put(
        &ground,
        &path,
        Some(before.header("etag")),
        json!({"maxRetries": 1}),
    )
    .await;
    assert_eq!(reply.json()["maxRetries"], 1);
    assert_eq!(ground.json(DEFAULT).await["maxRetries"], 3);
    assert_eq!(
        ground.get("/api/projects/none/retry-policy").await.status,
        404
    );
}

#[tokio::test]
async fn change_based_on_an_old_version_is_rejected() {
    let ground = Ground::new().await;
    let seen = ground.get(DEFAULT).await;
    let etag = seen.header("etag");
    assert_eq!(
        put(&ground, DEFAULT, None, json!({"maxRetries": 1}))
            .await
            .status,
        428
    );
    assert_eq!(
        put(&ground, DEFAULT, Some(etag), json!({"maxRetries": 1}))
            .await
            .status,
        200
    );
    assert_eq!(
        put(&ground, DEFAULT, Some(etag), json!({"maxRetries": 2}))
            .await
            .status,
        412
    );
    assert_eq!(ground.json(DEFAULT).await["maxRetries"], 1);
}

#[tokio::test]
async fn stored_policy_can_be_removed() {
    let ground = Ground::new().await;
    let first = ground.get(DEFAULT).await;
    let set = put(
        &ground,
        DEFAULT,
        Some(first.header("etag")),
        json!({"maxRetries": 1}),
    )
    .await;
    let token = ground.token(PermissionScope::Admin);
    let asking = ground.ask("DELETE", DEFAULT).token(&token);
    let reply = asking.header("if-match", set.header("etag")).send().await;
    assert_eq!(
        (reply.status.as_u16(), &reply.json()["maxRetries"]),
        (200, &3.into())
    );
    let stale = ground
        .ask("DELETE", DEFAULT)
        .token(&token)
        .header("if-match", set.header("etag"));
    assert_eq!(stale.send().await.status, 412);
}

#[tokio::test]
async fn invalid_policy_is_rejected_with_field_errors() {
    let ground = Ground::new().await;
    let etag = ground.get(DEFAULT).await;
    let body = json!({"maxRetry": 3, "backoffBase": -1});
    let reply = put(&ground, DEFAULT, Some(etag.header("etag")), body).await;
    assert_eq!(reply.status, 422);
    let problem = reply.json();
    let fields: Vec<_> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["field"])
        .collect();
    assert!(
        fields.contains(&&json!("maxRetry")) && fields.contains(&&json!("backoffBase")),
        "{problem}"
    );
}

#[tokio::test]
async fn unchanged_policy_is_not_sent_again() {
    let ground = Ground::new().await;
    let etag = ground.get(DEFAULT).await;
    let reply = ground
        .ask("GET", DEFAULT)
        .header("if-none-match", etag.header("etag"))
        .send()
        .await;
    assert_eq!((reply.status.as_u16(), reply.body.as_str()), (304, ""));
}

#[tokio::test]
async fn setting_a_policy_requires_the_admin_scope() {
    let ground = Ground::new().await;
    let etag = ground.get(DEFAULT).await;
    for (scope, status) in [
        (PermissionScope::Read, 403),
        (PermissionScope::Answer, 403),
        (PermissionScope::Admin, 200),
    ] {
        let token = ground.token(scope);
        let asking = ground
            .ask("PUT", DEFAULT)
            .token(&token)
            .json(&json!({"maxRetries": 1}));
        let reply = asking.header("if-match", etag.header("etag")).send().await;
        assert_eq!(reply.status, status, "{scope}: {}", reply.body);
    }
}
