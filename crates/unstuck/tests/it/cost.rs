//! `unstuck cost`, and API calls in the run timeline.

use std::time::Duration;

use serde_json::{Value, json};
use unstuck_core::decision::{Decision, RandomDraw, RecoveryAction, TokenUsage};
use unstuck_core::diagnosis::{Diagnosis, Evidence};
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord};
use unstuck_core::event::{CallFailed, Event, RunId, RunKind, RunStarted, SessionSpec};
use unstuck_core::{FailureKind, FailureLayer, RecoveryLevel, RetryPolicy, Timestamp};
use unstuck_store::{RunEventBatch, Store, StoreLocation, StoreOptions};

use crate::output_snapshot::assert_output;
use crate::{Ended, Place};

const DRIVEN: &str = "k3v9x0m2qa";
const CLIENTS: &str = "q7zzzzzzzz";

fn second(second: i64) -> Timestamp {
    Timestamp::from_seconds(1_794_777_609 + second)
}

fn started(run: &RunId, command: &[&str], unrepeatable: Option<&str>) -> Event {
    Event::from(Box::new(RunStarted {
        head: None,
        project: "/home/me/shop".into(),
        kind: RunKind::Command(Box::new(SessionSpec {
            cwd: "/home/me/shop".into(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            agent: None,
            model: None,
            session: run.session_id(1),
            policy: RetryPolicy::default(),
            origins: Default::default(),
            timeout_ms: None,
            idle_timeout_ms: None,
            options: Value::Null,
            unrepeatable_reason: unrepeatable.map(str::to_owned),
            knowledge: "0.1.0".into(),
        })),
    }))
}

fn event(fields: Value) -> Event {
    Event::from_value(fields.as_object().unwrap().clone())
}

fn call(run: &RunId, id: &str, at: Timestamp) -> ApiCallRecord {
    ApiCallRecord {
        call: id.into(),
        run: run.clone(),
        session: run.session_id(1),
        at,
        protocol: "anthropic".into(),
        endpoint: "messages".into(),
        upstream: "anthropic".into(),
        requested_model: Some("claude-sonnet-5-5".into()),
        model: Some("claude-sonnet-5-5".into()),
        is_stream: true,
        outcome: ApiCallOutcome::Answered,
        status: 200,
        kind: None,
        attempts: 1,
        waited_ms: 0,
        first_byte_ms: 400,
        duration_ms: 2_000,
        sent_bytes: 4_096,
        tokens: Some(TokenUsage {
            input: 100_000,
            cached: 300_000,
            output: 20_000,
            requests: 1,
        }),
        cost_usd: Some(0.25),
    }
}

fn recovered(run: &RunId, at: Timestamp) -> ApiCallRecord {
    ApiCallRecord {
        outcome: ApiCallOutcome::Recovered,
        kind: Some(FailureKind::ServerOverloaded),
        attempts: 2,
        ..call(run, "c2", at)
    }
}

fn call_failed(run: &RunId, at: Timestamp) -> Event {
    Event::from(Box::new(CallFailed {
        session: run.session_id(1),
        call: "c2".into(),
        number: 1,
        upstream: "anthropic".into(),
        model: Some("claude-sonnet-5-5".into()),
        status: Some(529),
        diagnosis: Diagnosis {
            kind: FailureKind::ServerOverloaded,
            layer: FailureLayer::Api,
            level: Some(RecoveryLevel::Same),
            confidence: 0.9,
            retry_after: None,
            retry_after_source: None,
            evidence: Evidence {
                rule: "anthropic.overloaded".into(),
                line: "overloaded_error".into(),
            },
            fingerprint: "0123456789abcdef".into(),
            message: "The model's servers are overloaded.".into(),
            hint: "Wait a little.".into(),
            truncated: false,
        },
        decision: Decision {
            kind: FailureKind::ServerOverloaded,
            level: Some(RecoveryLevel::Same),
            action: RecoveryAction::Retry {
                delay: Duration::from_secs(1),
                until: at,
            },
            strategy: None,
            reason: "Servers overloaded: retrying in 1 s (retry 1 of 3).".into(),
            attempt: 1,
            max_attempts: 3,
            skipped: Vec::new(),
            cost: None,
            is_stated_reset: false,
            give_up_at: None,
            wait_purpose: Default::default(),
            selection: Default::default(),
            draw: RandomDraw(1),
            decided_at: at,
        },
        fallback: None,
        skipped_upstreams: Vec::new(),
        policy_hash: "h".into(),
        conversation: None,
    }))
}

/// Writes an agent's run with two calls, one of them recovered, and a client's own session with one of unknown price.
async fn fill(store: &Store) {
    let run = RunId::new(DRIVEN);
    let session = run.session_id(1);
    let log = [
        (0, started(&run, &["my-agent"], None)),
        (
            0,
            event(
                json!({"event": "attempt_started", "session": session, "number": 1, "command": ["my-agent"]}),
            ),
        ),
        (5, call_failed(&run, second(5))),
        (7, Event::from(Box::new(recovered(&run, second(4))))),
        (
            10,
            event(
                json!({"event": "attempt_succeeded", "session": session, "number": 1, "exit_code": 0,
            "duration_ms": 10_000, "stdout_bytes": 1, "stderr_bytes": 0}),
            ),
        ),
        (
            10,
            event(
                json!({"event": "run_finished", "outcome": "succeeded", "exit_code": 0, "reason": "done",
            "attempts": 1, "retry_count": 0, "duration_ms": 10_000}),
            ),
        ),
    ];
    for (at, event) in log {
        let append = RunEventBatch::new(run.clone(), second(at), [event]);
        store.append(append).await.unwrap();
    }
    let client = RunId::new(CLIENTS);
    let own = started(
        &client,
        &["(gateway)", "codex_cli_rs/1.2.3"],
        Some("the session is controlled by its client"),
    );
    let noted = [own, call_failed(&client, second(90_000))];
    for event in noted {
        let append = RunEventBatch::new(client.clone(), second(90_000), [event]);
        store.append(append).await.unwrap();
    }
    let unpriced = ApiCallRecord {
        model: Some("my-model".into()),
        cost_usd: None,
        ..call(&client, "c3", second(90_000))
    };
    let calls = vec![
        call(&run, "c1", second(1)),
        recovered(&run, second(4)),
        unpriced,
    ];
    store.record_calls(calls).await.unwrap();
}

fn filled() -> Place {
    let place = Place::new();
    let location = StoreLocation::file(place.project().join("history.db"));
    let work = async {
        let store = Store::open(&location, StoreOptions::default())
            .await
            .unwrap();
        fill(&store).await;
        store.close().await.unwrap();
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work);
    place
}

fn told(place: &Place, args: &[&str]) -> Ended {
    place.run(&[&["--store", "history.db"], args].concat(), "")
}

#[test]
fn listing_without_calls_is_empty() {
    let place = Place::new();
    assert_eq!(place.json(&["cost", "--json"], ""), json!([]));
    let nothing = place.run(&["cost"], "");
    assert_eq!(nothing.code, 0);
    assert_output!(place, nothing.stdout);
    assert_eq!(place.run(&["cost", "--by", "moon"], "").code, 2);
}

#[test]
fn costs_are_grouped_and_filtered() {
    let place = filled();
    let days = told(&place, &["cost"]).stdout;
    insta::assert_snapshot!(days, @r"
    day (UTC)      calls  recovered   failed        in    cached       out  cost
    2026-11-15         2          1        0     200 k     600 k      40 k  0.50 USD
    2026-11-16         1          0        0     100 k     300 k      20 k  unknown price
    total              3          1        0     300 k     900 k      60 k  0.50 USD and 1 call of unknown price
    ");
    let models = place.json(
        &["--store", "history.db", "cost", "--by", "model", "--json"],
        "",
    );
    assert_eq!(models[0]["id"], "claude-sonnet-5-5");
    assert_eq!(models[0]["cost_usd"], 0.5);
    assert_eq!(models[1]["unknown_price"], 1);
    let runs = told(&place, &["cost", "--by", "run"]).stdout;
    assert!(runs.contains(DRIVEN) && runs.contains(CLIENTS), "{runs}");
    let none = told(&place, &["cost", "--project", "/nowhere"]).stdout;
    assert_output!(place, none);
}

#[test]
fn run_is_shown_with_its_calls() {
    let place = filled();
    let shown = told(&place, &["show", DRIVEN]).stdout;
    assert_output!(place, shown);
    let json = place.json(&["--store", "history.db", "show", DRIVEN, "--json"], "");
    assert_eq!(json["api_calls"]["recovered"], 1);
    assert_eq!(json["cost_usd"], 0.5);
    assert_eq!(
        json["attempts"][0]["calls"][0]["failed_attempts"][0]["kind"],
        "server_overloaded"
    );
    let runs = place.json(&["--store", "history.db", "runs", "--json"], "");
    assert_eq!(runs[1]["cost_usd"], 0.5);
}

/// A client's own session can be inspected, but only its client can continue it.
#[test]
fn client_session_is_reported_as_such() {
    let place = filled();
    let listed = told(&place, &["runs"]).stdout;
    assert!(listed.contains("gateway: codex_cli_rs/1.2.3"), "{listed}");
    let shown = told(&place, &["show", CLIENTS]).stdout;
    assert_output!(place, shown);
    let explained = told(&place, &["explain", CLIENTS]).stdout;
    assert!(explained.contains("retrying in 1 s"), "{explained}");
    for command in ["resume", "logs"] {
        let refused = told(&place, &[command, CLIENTS]);
        assert_eq!(refused.code, 1, "{command}");
        assert_output!(place, refused.stderr);
    }
    let nothing = told(&place, &["resume"]);
    assert_eq!(nothing.code, 1);
    assert!(!nothing.stderr.contains(CLIENTS), "{}", nothing.stderr);
}
