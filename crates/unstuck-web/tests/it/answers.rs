//! Tests of escalations and their answers.

use serde_json::{Value, json};
use unstuck_web::auth::PermissionScope;

use crate::ground::Ground;

const QUESTION: &str = "/api/escalations/r000000002-q1";

#[tokio::test]
async fn escalation_contains_everything_needed_to_answer_it() {
    let ground = Ground::filled().await;
    let page = ground.json("/api/escalations").await;
    let asked = &page["items"][0];
    assert_eq!(
        (&asked["type"], &asked["trigger"]),
        (&"hiccup".into(), &"HICCUP".into())
    );
    assert_eq!(
        (&asked["kind"], &asked["activity"]),
        (&"auth_expired".into(), &"fixing the tests".into())
    );
    assert_eq!(
        asked["priorAttempts"][0]["failureReason"],
        "the login is still expired"
    );
    assert_eq!(
        asked["answers"][0],
        json!({
            "answer": "resolve", "effect": "retry; you fixed it manually", "costUsd": null
        })
    );
    assert_eq!(
        (&asked["hash"], &asked["outcome"]),
        (&"abc123".into(), &Value::Null)
    );
    assert_eq!(ground.json(QUESTION).await, *asked);
}

#[tokio::test]
async fn first_answer_is_accepted_and_later_ones_get_a_conflict() {
    let ground = Ground::filled().await;
    let path = format!("{QUESTION}/answer");
    let given = json!({"answer": "resolve", "note": "logged in again", "hash": "abc123"});
    let reply = ground
        .post(PermissionScope::Answer, &path, given.clone())
        .await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let how = &reply.json()["escalation"]["outcome"]["resolution"];
    assert_eq!(
        (&how["method"], &how["note"]),
        (&"manual".into(), &"logged in again".into())
    );
    assert_eq!(how["user"], "test");
    let again = ground.post(PermissionScope::Answer, &path, given).await;
    assert_eq!(again.status, 409);
    assert!(
        again.json()["detail"]
            .as_str()
            .unwrap()
            .contains("resolved manually by test")
    );
    assert_eq!(ground.json("/api/escalations").await["items"], json!([]));
    let all = ground.json("/api/escalations?answered=true").await;
    assert_eq!(all["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn answer_must_match_the_shown_escalation_and_the_available_answers() {
    let ground = Ground::filled().await;
    let path = format!("{QUESTION}/answer");
    let answers = [
        (json!({"answer": "resolve", "hash": "another"}), 409),
        (json!({"answer": "approve"}), 422),
        (json!({"answer": "retry", "note": "  "}), 422),
        (json!({"answer": "maybe"}), 422),
        (json!({"note": "x"}), 422),
        (json!({"answer": "resolve", "notes": "x"}), 422),
    ];
    for (body, status) in answers {
        let reply = ground
            .post(PermissionScope::Answer, &path, body.clone())
            .await;
        assert_eq!(reply.status, status, "{body}: {}", reply.body);
    }
    assert_eq!(ground.json(QUESTION).await["outcome"], Value::Null);
    let none = json!({"answer": "resolve"});
    let reply = ground
        .post(
            PermissionScope::Answer,
            "/api/escalations/none/answer",
            none,
        )
        .await;
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn every_available_answer_is_accepted() {
    for answer in ["resolve", "retry", "skip", "abort"] {
        let ground = Ground::filled().await;
        let given = json!({"answer": answer, "note": "my words"});
        let reply = ground
            .post(
                PermissionScope::Answer,
                &format!("{QUESTION}/answer"),
                given,
            )
            .await;
        assert_eq!(reply.status, 200, "{answer}: {}", reply.body);
    }
}

#[tokio::test]
async fn preview_without_a_command_is_rejected() {
    let ground = Ground::filled().await;
    let reply = ground
        .post(
            PermissionScope::Answer,
            &format!("{QUESTION}/preview"),
            json!({}),
        )
        .await;
    assert_eq!(reply.status, 409);
}
