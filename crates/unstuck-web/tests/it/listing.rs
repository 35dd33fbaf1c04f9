//! Tests of lists and details of runs, sessions and projects.

use std::time::Duration;

use serde_json::Value;
use unstuck_core::Event;
use unstuck_core::escalation::{EscalationAnswer, EscalationDeadline};
use unstuck_run::runner::current_owner;
use unstuck_store::{LeaseClaim, RunEventBatch};
use unstuck_web::auth::PermissionScope;

use crate::ground::{Ground, SECRET};
use crate::samples;

#[tokio::test]
async fn run_list_contains_all_summary_fields() {
    let ground = Ground::filled().await;
    let page = ground.json("/api/runs").await;
    assert_eq!(page["items"].as_array().unwrap().len(), 3);
    assert_eq!(page["next"], Value::Null);
    let page = ground.json("/api/runs?status=recovered,failed").await;
    let run = &page["items"][0];
    assert_eq!(run["id"], "r000000001");
    assert_eq!(
        (&run["status"], &run["kind"]),
        (&"recovered".into(), &"rate_limit".into())
    );
    assert_eq!(
        (&run["attemptCount"], &run["retryCount"]),
        (&2.into(), &1.into())
    );
    assert_eq!(
        (&run["costUsd"], &run["started"]),
        (&0.5.into(), &"2026-11-15T21:20:09Z".into())
    );
    assert_eq!(
        (&run["supervised"], &run["project"]),
        (&false.into(), &"/home/me/shop".into())
    );
}

#[tokio::test]
async fn run_details_contain_sessions_attempts_and_decisions() {
    let ground = Ground::filled().await;
    let run = ground.json("/api/runs/r000000001").await;
    assert_eq!(run["sessions"][0]["id"], "r000000001-1");
    assert_eq!(run["cwd"], "/home/me/shop");
    let attempts = ground.json("/api/runs/r000000001/attempts").await;
    let first = &attempts["items"][0];
    assert_eq!(first["outcome"], "failed");
    assert_eq!(first["diagnosis"]["line"], "429 slow down");
    assert_eq!(
        first["decision"]["reason"],
        "Rate limit exceeded: retrying in 1 s (retry 1 of 3)."
    );
    assert_eq!(
        (
            &first["decision"]["delayMs"],
            &first["decision"]["maxAttempts"]
        ),
        (&1000.into(), &3.into())
    );
    assert_eq!(first["wait"]["stated"], true);
    let second = ground.json("/api/runs/r000000001/attempts/2").await;
    assert_eq!(second, attempts["items"][1]);
    let texts = ground.json("/api/runs/r000000001/attempts/2/texts").await;
    assert_eq!(texts["stdout"], "output of r000000001/2");
    assert_eq!(
        ground.get("/api/runs/r000000001/attempts/9").await.status,
        404
    );
}

/// S4-04, S4-10, S4-20: the number and the reasons of retries stay in the history of a session.
#[tokio::test]
async fn session_contains_its_retries() {
    let ground = Ground::filled().await;
    let session = ground.json("/api/sessions/r000000001-1").await;
    assert_eq!(
        (&session["attemptCount"], &session["maxAttempts"]),
        (&2.into(), &4.into())
    );
    assert_eq!(
        session["retries"],
        serde_json::json!([{
            "attemptNumber": 1, "error": "rate_limit", "errorMessage": "It failed: 429 slow down",
            "timestamp": "2026-11-15T21:20:12Z", "delayMs": 1000, "succeeded": true
        }])
    );
    let attempts = ground.json("/api/sessions/r000000001-1/attempts").await;
    assert_eq!(attempts["items"].as_array().unwrap().len(), 2);
}

/// S4-12, S4-21: a session contains its model switches.
#[tokio::test]
async fn session_contains_its_model_switches() {
    let ground = Ground::filled().await;
    let session = ground.json("/api/sessions/r000000003-1").await;
    assert_eq!(
        session["modelChanges"],
        serde_json::json!([{
            "fromModel": "claude-haiku-5-5", "toModel": "claude-sonnet-5-5", "reason": "auto_after_retries",
            "timestamp": "2026-11-15T21:20:11Z", "costEstimate": 0.25
        }])
    );
}

#[tokio::test]
async fn only_active_sessions_are_listed() {
    let ground = Ground::filled().await;
    let page = ground.json("/api/sessions").await;
    let ids: Vec<_> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, ["r000000002-1", "r000000003-1"]);
    let first = ground.json("/api/sessions?limit=1").await;
    let next = first["next"].as_str().unwrap();
    let second = ground
        .json(&format!("/api/sessions?limit=1&after={next}"))
        .await;
    assert_eq!(second["items"][0]["id"], "r000000003-1");
    assert_eq!(second["next"], Value::Null);
}

#[tokio::test]
async fn projects_contain_run_counts_by_status() {
    let ground = Ground::filled().await;
    let page = ground.json("/api/projects").await;
    let all = page["items"].as_array().unwrap();
    let shop = all.iter().find(|one| one["name"] == "shop").unwrap();
    assert_eq!(
        shop["runs"],
        serde_json::json!({"awaiting_human": 1, "recovered": 1})
    );
    let id = shop["id"].as_str().unwrap();
    assert_eq!(ground.json(&format!("/api/projects/{id}")).await, *shop);
    let runs = ground.json(&format!("/api/runs?project={id}")).await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);
    assert_eq!(ground.get("/api/projects/000000000000").await.status, 404);
    assert_eq!(
        ground.get("/api/runs?project=000000000000").await.status,
        404
    );
}

#[tokio::test]
async fn run_pages_are_stable_while_new_runs_begin() {
    let ground = Ground::filled().await;
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let page = ground.json(&format!("/api/runs?limit=1{after}")).await;
        seen.push(page["items"][0]["id"].as_str().unwrap().to_owned());
        let new = samples::run(10 + seen.len() as u32);
        let begun = samples::started(&new, "/home/me/new");
        let append = RunEventBatch::new(new.clone(), samples::later(500), [begun]);
        ground.store.append(append).await.unwrap();
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    seen.sort();
    assert_eq!(seen, ["r000000001", "r000000002", "r000000003"]);
}

#[tokio::test]
async fn server_returns_version_and_configuration() {
    let ground = Ground::filled().await;
    assert_eq!(ground.json("/api/health").await["status"], "ok");
    assert_eq!(ground.json("/api/ready").await["status"], "ready");
    assert_eq!(ground.json("/api/version").await["version"], "0.1.0");
    let agents = ground.json("/api/agents").await;
    let agents = agents["items"].as_array().unwrap();
    assert!(
        agents
            .iter()
            .any(|one| one["id"] == "claude" && one["resumes"] == true)
    );
    let models = ground.json("/api/models").await;
    assert!(
        models["models"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["price"]["output"].is_number())
    );
    assert_eq!(ground.json("/api/budgets").await["budgets"][0]["usd"], 20.0);
    assert_eq!(
        ground.json("/api/upstreams").await["items"],
        serde_json::json!([])
    );
    let spent = ground.json("/api/spending?by=model").await;
    assert_eq!(
        (&spent["items"][0]["calls"], &spent["items"][0]["costUsd"]),
        (&0.into(), &0.75.into()),
        "what agents told counts although no call was seen"
    );
    let learned = ground.json("/api/success-rates").await;
    assert_eq!(
        learned["items"],
        serde_json::json!([{"kind": "rate_limit", "strategy": "same", "succeeded": 1, "failed": 0}])
    );
    let templates = ground.json("/api/policy-templates").await;
    assert_eq!(templates["items"][0]["id"], "resilient");
}

/// Invariant 7: a secret never reaches a page, even if it was stored before it was known to be a secret.
#[tokio::test]
async fn no_response_contains_a_secret() {
    let ground = Ground::new().await;
    let run = samples::run(1);
    let line = format!("login with {SECRET} refused");
    let events = vec![
        samples::started(&run, &format!("/home/me/{SECRET}")),
        samples::attempt(&run, 1),
        samples::failed(&run, 1, unstuck_core::FailureKind::AuthRequired, &line),
    ];
    samples::write(&ground.store, &run, events).await;
    for path in [
        "/api/runs",
        "/api/runs/r000000001",
        "/api/runs/r000000001/attempts",
        "/api/sessions/r000000001-1",
        "/api/projects",
        "/api/failures",
        "/api/analytics/failures",
        "/api/analytics/failures/export",
        "/api/analytics/failures/export?format=csv",
        "/api/runs/correct-horse-battery",
    ] {
        let reply = ground.get(path).await;
        assert!(!reply.body.contains(SECRET), "{path}: {}", reply.body);
    }
}

/// W3, W12: the counts on the overview come from the store, however many runs are blocked, and a run whose process is
/// gone is not counted as running.
#[tokio::test]
async fn overview_counts_all_runs_and_notes_truncated_tables() {
    let ground = Ground::new().await;
    let (running, crashed) = (samples::run(1), samples::run(2));
    for run in [&running, &crashed] {
        let events = samples::running(run, "/home/me/shop");
        samples::write(&ground.store, run, events).await;
    }
    let claim = LeaseClaim {
        run: running.clone(),
        owner: current_owner(),
        now: ground.web.now(),
        replaces: None,
    };
    ground.store.claim(claim).await.unwrap();
    for number in 3..63 {
        let run = samples::run(number);
        let events = samples::asking(&run, "/home/me/shop");
        samples::write(&ground.store, &run, events).await;
    }
    let page = ground.get("/").await.body;
    for told in [
        r#"<span class="big">1</span><span class="name">running</span>"#,
        r#"<span class="big">1</span><span class="name">crashed</span>"#,
        "Showing 50 of 62 runs.",
        running.as_str(),
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
}

/// N29: pages and the API list the newest escalations first, each with its activity and expiry.
#[tokio::test]
async fn pending_escalations_are_listed_newest_first_with_command_and_expiry() {
    let ground = Ground::new().await;
    for (number, command) in [(1, "make slow"), (2, "make broken")] {
        let run = samples::run(number);
        let until = ground.web.now().after(Duration::from_secs(7200));
        let mut asked = samples::escalation(&run);
        asked.details.activity = command.into();
        asked.details.deadline = Some(EscalationDeadline {
            at: until,
            answer: EscalationAnswer::Abort,
        });
        let events = [
            samples::started(&run, "/home/me/shop"),
            samples::attempt(&run, 1),
            Event::from(Box::new(asked)),
        ];
        let append = RunEventBatch::new(run, samples::later(u64::from(number)), events);
        ground.store.append(append).await.unwrap();
    }
    let listed = ground.json("/api/escalations").await;
    assert_eq!(listed["items"][0]["id"], "r000000002-q1");
    let first = ground.json("/api/escalations?limit=1").await;
    let next = first["next"].as_str().unwrap();
    let second = ground
        .json(&format!("/api/escalations?limit=1&after={next}"))
        .await;
    assert_eq!(second["items"][0]["id"], "r000000001-q1");
    for path in ["/", "/inbox"] {
        let page = ground.get(path).await.body;
        let cards: Vec<_> = page.split("<article").skip(1).collect();
        assert_eq!(cards.len(), 2, "{path}: {page}");
        for (card, command) in cards.iter().zip(["make broken", "make slow"]) {
            for told in [command, "default answer: Abort the run", "in 2 h 00 min"] {
                assert!(card.contains(told), "{path}, {told}: {card}");
            }
        }
    }
    let answer = serde_json::json!({"answer": "abort"});
    let path = "/api/escalations/r000000001-q1/answer";
    assert_eq!(
        ground
            .post(PermissionScope::Answer, path, answer)
            .await
            .status,
        200
    );
    let page = ground.get("/inbox").await.body;
    let (_, answered) = page.split_once("answered-title").unwrap();
    assert!(answered.contains("make slow"), "{answered}");
}
