//! Tests of retry, model switch, stop and webhook tests.

use serde_json::{Value, json};
use unstuck_web::auth::PermissionScope;

use crate::ground::Ground;

/// S4-28: a session is retried with options.
#[tokio::test]
async fn session_is_retried_with_the_given_options() {
    let ground = Ground::filled().await;
    let path = "/api/sessions/r000000002-1/retry";
    let options = json!({"withContext": true, "message": "use staging", "model": "claude-opus-5-5", "timeout": "20m"});
    let reply = ground.post(PermissionScope::Answer, path, options).await;
    assert_eq!(reply.status, 202, "{}", reply.body);
    assert_eq!(reply.json()["session"], "r000000002-1");
    let done = ground.doer.done.lock().unwrap().clone();
    assert!(
        done[0].starts_with("retry r000000002-1 ") && done[0].contains("use staging"),
        "{done:?}"
    );
}

#[tokio::test]
async fn invalid_retry_is_rejected() {
    let ground = Ground::filled().await;
    let path = "/api/sessions/r000000002-1/retry";
    let reply = ground
        .post(PermissionScope::Answer, path, json!({"timeout": "soon"}))
        .await;
    assert_eq!(
        (reply.status.as_u16(), &reply.json()["errors"][0]["field"]),
        (422, &"timeout".into())
    );
    let reply = ground
        .post(PermissionScope::Answer, path, json!({"wihtContext": true}))
        .await;
    assert_eq!(reply.status, 422);
    let reply = ground
        .post(
            PermissionScope::Answer,
            "/api/sessions/r000000009-1/retry",
            json!({}),
        )
        .await;
    assert_eq!(reply.status, 404);
    assert!(ground.doer.done.lock().unwrap().is_empty());
}

/// S4-06, S4-07: the prompt of a retry can be previewed.
#[tokio::test]
async fn retry_prompt_can_be_previewed() {
    let ground = Ground::filled().await;
    let path = "/api/sessions/r000000002-1/retry-prompt";
    let reply = ground
        .post(
            PermissionScope::Answer,
            path,
            json!({"words": "use staging"}),
        )
        .await;
    assert_eq!(reply.json()["prompt"], "fix the tests use staging");
    assert!(ground.doer.done.lock().unwrap().is_empty());
}

/// S4-29, S4-13: the first call returns the estimated cost and changes nothing; the confirmed call switches the model.
#[tokio::test]
async fn model_switch_is_estimated_first_and_done_when_confirmed() {
    let ground = Ground::filled().await;
    let path = "/api/sessions/r000000003-1/escalate";
    let before = ground.json("/api/sessions/r000000003-1").await;
    let asked = ground
        .post(PermissionScope::Answer, path, json!({}))
        .await
        .json();
    assert_eq!(asked["estimate"]["fromModel"], "claude-sonnet-5-5");
    assert_eq!(asked["estimate"]["toModel"], "claude-opus-5-5");
    assert!(asked["estimate"]["usd"].as_f64().unwrap() > 0.0);
    assert!(
        asked["estimate"]["formula"]
            .as_str()
            .unwrap()
            .contains("output tokens")
    );
    assert_eq!(asked["change"], Value::Null);
    assert_eq!(ground.json("/api/sessions/r000000003-1").await, before);
    let done = ground
        .post(PermissionScope::Answer, path, json!({"confirm": true}))
        .await
        .json();
    assert_eq!(
        (&done["change"]["toModel"], &done["change"]["reason"]),
        (&"claude-opus-5-5".into(), &"manual".into())
    );
    let after = ground.json("/api/sessions/r000000003-1").await;
    assert_eq!(after["modelChanges"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn running_run_can_be_stopped_and_ended_run_cannot() {
    let ground = Ground::filled().await;
    let reply = ground
        .post(
            PermissionScope::Answer,
            "/api/runs/r000000003/stop",
            json!({}),
        )
        .await;
    assert_eq!(reply.status, 202);
    let reply = ground
        .post(
            PermissionScope::Answer,
            "/api/runs/r000000001/stop",
            json!({}),
        )
        .await;
    assert_eq!(reply.status, 409);
    assert_eq!(*ground.doer.done.lock().unwrap(), ["stop r000000003"]);
}

#[tokio::test]
async fn webhook_test_requires_the_admin_scope() {
    let ground = Ground::new().await;
    let path = "/api/webhooks/escalation-1/test";
    assert_eq!(
        ground
            .post(PermissionScope::Answer, path, json!({}))
            .await
            .status,
        403
    );
    let reply = ground.post(PermissionScope::Admin, path, json!({})).await;
    assert_eq!(reply.json()["delivered"], true);
    assert_eq!(
        ground
            .post(PermissionScope::Admin, "/api/webhooks/none/test", json!({}))
            .await
            .status,
        404
    );
}
