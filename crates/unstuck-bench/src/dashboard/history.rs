//! A store with 90 days of runs: failed, recovered, running, and with pending escalations.

use std::path::Path;

use anyhow::Result;
use futures_util::future::try_join_all;
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord, Event, RunId};
use unstuck_core::{FailureKind, Timestamp};
use unstuck_store::{RunEventBatch, Store, StoreLocation, StoreOptions};

use crate::inbox::escalation_event;
use crate::store::{run_started, sample_call};

const RUNS: u32 = 40_000;
const EVENTS: u32 = 25;
const CALLS: u32 = 100_000;
const DAYS: i64 = 90;
pub(super) const DAY_MS: i64 = 86_400_000;

/// The failure kinds used here, each with an error line.
const FAILURES: [(&str, &str); 6] = [
    (
        "rate_limit",
        "API Error: 429 rate_limit_error, request req_011CSNw2",
    ),
    ("server_overloaded", "API Error: 529 overloaded_error"),
    ("timeout", "it took longer than 600 s"),
    ("network_error", "connect ECONNREFUSED 10.0.0.7:443"),
    ("missing_sections", "the section `Tests` is missing"),
    ("cli_crash", "thread 'main' panicked at src/main.rs:17"),
];

/// Number of recent runs with a pending escalation; some before them are still running.
const RUNS_WAITING: u32 = 30;
const RUNS_ACTIVE: u32 = 30;

/// Returns a run with a pending escalation.
pub(super) fn waiting_run() -> RunId {
    run_id(RUNS - 1)
}

fn run_id(number: u32) -> RunId {
    RunId::new(format!("p{number:09}"))
}

/// Fills a store with the history of the days before this moment.
pub(super) async fn fill_store(path: &Path, now: Timestamp) -> Result<Store> {
    let start = now.millis() - DAYS * DAY_MS;
    let store = Store::open(&StoreLocation::file(path), StoreOptions::default()).await?;
    let numbers: Vec<u32> = (0..RUNS).collect();
    for some in numbers.chunks(500) {
        let appends = some
            .iter()
            .map(|number| store.append(run_history(*number, start)));
        try_join_all(appends).await?;
    }
    let calls: Vec<_> = (0..CALLS)
        .map(|number| client_call(number, start))
        .collect();
    for some in calls.chunks(1000) {
        store.record_calls(some.to_vec()).await?;
    }
    Ok(store)
}

/// Returns the events of one run: a few failures, each with a recovery, and an end.
fn run_history(number: u32, start: i64) -> RunEventBatch {
    let run = run_id(number);
    let at = start + i64::from(number) * (DAYS * DAY_MS / i64::from(RUNS));
    let model = format!("model-{}", number % 5);
    let mut events = vec![numbered_run_started(&run, number)];
    for attempt in 1..EVENTS {
        events.push(match attempt {
            odd if odd % 2 == 1 => event_from_json(serde_json::json!({
                "event": "attempt_started", "session": run.session_id(1), "number": odd,
                "command": ["claude", "-p", "fix the tests"], "model": model,
            })),
            last if last == EVENTS - 1 => event_from_json(serde_json::json!({
                "event": "run_finished", "outcome": if number.is_multiple_of(9) { "failed" } else { "recovered" },
                "exit_code": 0, "reason": "It is done.", "attempts": 12, "retry_count": 6, "cost_usd": 0.5,
                "duration_ms": 120_000,
            })),
            even => attempt_ended(&run, &model, number, even),
        });
    }
    match RUNS - number {
        ..=RUNS_WAITING => events[EVENTS as usize - 1] = escalation_event(&run),
        left if left <= RUNS_WAITING + RUNS_ACTIVE => drop(events.pop()),
        _ => {}
    }
    RunEventBatch::new(run, Timestamp::from_millis(at), events)
}

fn numbered_run_started(run: &RunId, number: u32) -> Event {
    let mut event = run_started(run);
    if let Event::RunStarted(begun) = &mut event {
        begun.project = project(number);
        if let unstuck_core::event::RunKind::Command(spec) = &mut begun.kind {
            let chores = [
                "fix the tests",
                "review",
                "document",
                "translate",
                "tidy up",
            ];
            let chore = chores[number as usize % chores.len()];
            let part = [
                "cart", "login", "search", "mail", "api", "cache", "ui", "build",
            ];
            let part = part[number as usize / 5 % part.len()];
            spec.command = vec![
                "claude".into(),
                "-p".into(),
                format!("{chore} of the {part} #{number}"),
            ];
        }
    }
    event
}

/// Returns the end of an attempt: every other one fails, and the next one succeeds.
fn attempt_ended(run: &RunId, model: &str, number: u32, attempt: u32) -> Event {
    let mut end = serde_json::json!({
        "event": "attempt_succeeded", "session": run.session_id(1), "number": attempt, "exit_code": 0,
        "duration_ms": 1234, "stdout_bytes": 100, "stderr_bytes": 20, "model": model, "used": { "cost_usd": 0.01 },
        "cause": { "kind": "rate_limit", "level": "same" },
    });
    if attempt.is_multiple_of(4) {
        return event_from_json(end);
    }
    let which = (number + attempt) as usize;
    let (kind, line) = FAILURES[which % FAILURES.len()];
    end["event"] = "attempt_failed".into();
    end["diagnosis"] = serde_json::json!({
        "kind": kind, "layer": "agent", "level": "same", "confidence": 0.9,
        "evidence": { "rule": "a.rule", "line": format!("{line} ({})", ["a", "b", "c"][which % 3]) },
        "fingerprint": format!("{kind}:{}", which % 60), "message": "It failed.", "hint": "Wait.", "truncated": false,
    });
    event_from_json(end)
}

fn client_call(number: u32, start: i64) -> ApiCallRecord {
    let at = start + i64::from(number) * (DAYS * DAY_MS / i64::from(CALLS));
    ApiCallRecord {
        at: Timestamp::from_millis(at),
        outcome: match number % 20 {
            0 => ApiCallOutcome::Failed,
            1 => ApiCallOutcome::Recovered,
            _ => ApiCallOutcome::Answered,
        },
        kind: (number % 20 < 2).then_some(FailureKind::RateLimit),
        ..sample_call(number)
    }
}

pub(super) fn project(number: u32) -> String {
    format!("/home/me/project-{}", number % 20)
}

fn event_from_json(value: serde_json::Value) -> Event {
    Event::from_value(value.as_object().cloned().unwrap_or_default())
}
