//! Sample events as a supervisor writes them, and a store for them.

use serde_json::{Value, json};
use tempfile::TempDir;
use unstuck_core::event::{Event, EventRecord, RunId};
use unstuck_core::views::RunProjection;
use unstuck_core::{RetryPolicy, Timestamp};
use unstuck_notify::{
    NotificationEvent, NotificationSubscription, NotificationSubscriptions, NotificationTarget,
    WebhookTarget,
};
use unstuck_store::{RunEventBatch, Store, StoreLocation, StoreOptions};

pub(crate) const START: Timestamp = Timestamp::from_seconds(1_794_777_609);

pub(crate) fn later(seconds: u64) -> Timestamp {
    START.after(std::time::Duration::from_secs(seconds))
}

pub(crate) fn event(value: Value) -> Event {
    let Value::Object(fields) = value else {
        panic!("an event is an object");
    };
    let event = Event::from_value(fields);
    assert!(!matches!(event, Event::Unknown(_)), "{}", event.name());
    event
}

pub(crate) fn started(run: &RunId) -> Event {
    event(json!({
        "event": "run_started",
        "project": "/home/me/shop",
        "session": run.session_id(1),
        "cwd": "/home/me/shop",
        "command": ["claude", "-p", "fix the tests"],
        "agent": "claude",
        "policy": RetryPolicy::default(),
        "knowledge": "0.1.0",
    }))
}

pub(crate) fn failed(run: &RunId, fingerprint: &str, line: &str) -> Event {
    event(json!({
        "event": "attempt_failed",
        "session": run.session_id(1),
        "number": 1,
        "exit_code": 1,
        "signal": null,
        "limit": null,
        "duration_ms": 5,
        "stdout_bytes": 0,
        "stderr_bytes": 0,
        "left": 0,
        "model": null,
        "diagnosis": {
            "kind": "auth_expired",
            "layer": "agent",
            "level": "escalate",
            "confidence": 0.9,
            "evidence": { "rule": "a.b", "line": line },
            "fingerprint": fingerprint,
            "message": "The login has expired.",
            "hint": "Sign in again.",
            "truncated": false,
        },
    }))
}

pub(crate) fn asked(run: &RunId, reason: &str) -> Event {
    event(json!({
        "event": "recovery_escalated",
        "session": run.session_id(1),
        "id": format!("{run}-e1"),
        "type": "hiccup",
        "trigger": "HICCUP",
        "kind": "auth_expired",
        "why": "fatal",
        "reason": reason,
        "awaiting": "human",
        "choices": [{ "answer": "resolve", "does": "retry; you fixed it manually" }, { "answer": "skip", "does": "give up and return the original exit code" }],
    }))
}

pub(crate) fn answered(run: &RunId) -> Event {
    event(json!({
        "event": "recovery_resolved",
        "session": run.session_id(1),
        "id": format!("{run}-e1"),
        "by": "human",
        "method": "manual",
        "note": "signed in again",
    }))
}

pub(crate) fn ended(outcome: &str) -> Event {
    event(json!({
        "event": "run_finished",
        "outcome": outcome,
        "exit_code": 0,
        "reason": "succeeded after 1 failure",
        "attempts": 2,
        "retry_count": 1,
        "cost_usd": 0.25,
        "duration_ms": 62_000,
    }))
}

/// Returns the projection of these events.
pub(crate) fn fold(run: &RunId, events: &[Event]) -> RunProjection {
    let recorded = (1..).zip(events).map(|(seq, event)| EventRecord {
        version: 1,
        run: run.clone(),
        seq,
        at: START,
        event: event.clone(),
    });
    RunProjection::from_events(&recorded.collect::<Vec<_>>()).unwrap()
}

pub(crate) fn hook(on: NotificationEvent, address: WebhookTarget) -> NotificationSubscription {
    NotificationSubscription {
        event: on,
        target: NotificationTarget::Address(address),
        window: std::time::Duration::from_secs(600),
    }
}

/// Returns a local address that the user allows.
pub(crate) fn here(url: String) -> WebhookTarget {
    WebhookTarget {
        allow_private: true,
        ..WebhookTarget::unsigned_json(url)
    }
}

pub(crate) async fn open(folder: &TempDir) -> Store {
    let location = StoreLocation::file(folder.path().join("unstuck.db"));
    Store::open(&location, StoreOptions::default())
        .await
        .unwrap()
}

/// Writes a run that needs input, with messages for its subscribers.
pub(crate) async fn ask(
    store: &Store,
    hooks: &NotificationSubscriptions,
    run: &str,
    at: Timestamp,
) {
    let run = RunId::new(run);
    let before = [started(&run), failed(&run, "f1", "401 token expired")];
    let events = vec![asked(
        &run,
        "Authentication expired: retrying will not help; manual action required.",
    )];
    let outbox = hooks.build_messages(&fold(&run, &before), &events, at);
    let begin = RunEventBatch::new(run.clone(), at, before);
    store.append(begin).await.unwrap();
    let append = RunEventBatch::new(run, at, events).with_messages(outbox);
    store.append(append).await.unwrap();
}
