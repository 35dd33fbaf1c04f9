//! Tests of failure statistics and the list of failures.

use serde_json::Value;

use crate::ground::Ground;

/// S4-30, S4-22, S4-17, S2-27: the statistics are complete and use the specified names.
#[tokio::test]
async fn failures_are_counted_by_kind_model_project_prompt_message_and_day() {
    let ground = Ground::filled().await;
    let told = ground.json("/api/analytics/failures").await;
    assert_eq!(
        (&told["totalFailures"], &told["totalAttempts"]),
        (&2.into(), &3.into())
    );
    assert_eq!(
        told["byErrorType"],
        serde_json::json!({"auth_expired": 1, "rate_limit": 1})
    );
    assert_eq!(told["byModel"]["claude-sonnet-5-5"], 2);
    assert_eq!(told["byProject"]["/home/me/shop"], 2);
    assert!(
        told["byPromptPattern"][0]["template"]
            .as_str()
            .unwrap()
            .contains("fix the tests")
    );
    assert_eq!(told["topErrorMessages"].as_array().unwrap().len(), 2);
    let rate = told["failureRateByDay"]["2026-11-15"].as_f64().unwrap();
    assert!((rate - 2.0 / 3.0).abs() < 1e-9, "{rate}");
}

#[tokio::test]
async fn failures_are_filtered_by_time_project_model_and_kind() {
    let ground = Ground::filled().await;
    let blog = unstuck_web::model::project_id("/home/me/blog");
    for (query, count) in [
        ("kind=rate_limit".to_owned(), 1),
        ("kind=timeout".to_owned(), 0),
        ("model=claude-sonnet-5-5".to_owned(), 2),
        ("model=none".to_owned(), 0),
        (format!("project={blog}"), 0),
        ("since=2026-11-16T00:00:00Z".to_owned(), 0),
        ("until=2026-11-16T00:00:00Z".to_owned(), 2),
    ] {
        let told = ground
            .json(&format!("/api/analytics/failures?{query}"))
            .await;
        assert_eq!(told["totalFailures"], count, "{query}");
    }
    for wrong in [
        "kind=rate_limt",
        "since=yesterday",
        "project=none",
        "top=0",
        "colour=red",
    ] {
        let reply = ground
            .get(&format!("/api/analytics/failures?{wrong}"))
            .await;
        assert!(
            [400, 404].contains(&reply.status.as_u16()),
            "{wrong}: {}",
            reply.body
        );
    }
}

#[tokio::test]
async fn failures_are_exported_as_json_lines_and_csv() {
    let ground = Ground::filled().await;
    let reply = ground
        .get("/api/analytics/failures/export?format=jsonl")
        .await;
    assert_eq!(reply.header("content-type"), "application/jsonl");
    let lines: Vec<Value> = reply
        .body
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["session"], &lines[0]["attempt"]),
        (&"r000000002-1".into(), &1.into())
    );
    let reply = ground
        .get("/api/analytics/failures/export?format=csv&kind=rate_limit")
        .await;
    assert!(reply.header("content-type").starts_with("text/csv"));
    let lines: Vec<_> = reply.body.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("at,run,session,attempt,call,project,model,kind"));
    assert!(
        lines[1].contains("r000000001-1,1,,/home/me/shop,claude-sonnet-5-5,rate_limit"),
        "{}",
        lines[1]
    );
    assert_eq!(
        ground
            .get("/api/analytics/failures/export?format=xml")
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn failures_are_paginated() {
    let ground = Ground::filled().await;
    let first = ground.json("/api/failures?limit=1").await;
    let next = first["next"].as_str().unwrap();
    let second = ground
        .json(&format!("/api/failures?limit=1&after={next}"))
        .await;
    assert_eq!(
        (&first["items"][0]["kind"], &second["items"][0]["kind"]),
        (&"auth_expired".into(), &"rate_limit".into())
    );
    assert_eq!(ground.get("/api/failures?after=nonsense").await.status, 400);
}

/// S3-52: recovery statistics over all runs.
#[tokio::test]
async fn recovery_statistics_include_savings_and_duration() {
    let ground = Ground::filled().await;
    let told = ground.json("/api/analytics/recovery").await;
    assert_eq!(
        (&told["recoveries"], &told["runsSaved"]),
        (&1.into(), &1.into())
    );
    assert!(told["medianMs"].as_u64().unwrap() >= 4_000, "{told}");
    assert_eq!(told["byDay"]["2026-11-15"]["runsSaved"], 1);
    let other = ground.json("/api/analytics/recovery?kind=timeout").await;
    assert_eq!(other["recoveries"], 0);
}
