//! Measures durable events per second when many tasks write and each waits for its own acknowledgement.
//!
//! The baseline is plain SQLite with the same payloads in batches of 100, without projections or counters.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, params};
use unstuck_core::decision::TokenUsage;
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord};
use unstuck_core::event::{AttemptStarted, Event, RunId, RunKind, RunStarted, SessionSpec};
use unstuck_core::{RetryPolicy, Timestamp};
use unstuck_store::{RunEventBatch, Store, StoreError, StoreLocation, StoreOptions};

use crate::measure::{ROUNDS, Samples, now};
use crate::startup::millis;
use crate::table::{FigureTable, FigureTarget};

const TASKS: u32 = 500;
const APPENDS: u32 = 100;
pub(crate) const START: Timestamp = Timestamp::from_seconds(1_794_777_609);

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    table.section("7. Durable events: 500 tasks, each waiting for its own")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let folder = tempfile::tempdir()?;
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for round in 0..ROUNDS {
        let path = |name: &str| folder.path().join(format!("{name}-{round}.db"));
        ours.push(runtime.block_on(measure_concurrent(&path("store")))?);
        theirs.push(measure_bare_sqlite(&path("bare"))?);
    }
    table.row(
        "unstuck, full write path",
        &ours,
        "events/s",
        FigureTarget::AtLeast(20_000.0),
    )?;
    table.row(
        "bare SQLite in batches of 100",
        &theirs,
        "events/s",
        FigureTarget::None,
    )?;
    table.row(
        "bare ÷ unstuck",
        &theirs.ratio_to(&ours),
        "×",
        FigureTarget::None,
    )?;
    let mut calls = Samples::default();
    for round in 0..ROUNDS {
        let path = folder.path().join(format!("calls-{round}.db"));
        calls.push(runtime.block_on(measure_calls(&path))?);
    }
    table.row(
        "API calls, 1000 concurrent",
        &calls,
        "calls/s",
        FigureTarget::AtLeast(50_000.0),
    )?;
    let cold = runtime.block_on(measure_cold_open(&folder.path().join("store-0.db")))?;
    table.row(
        "open, write two events, close",
        &cold.map(millis),
        "ms",
        FigureTarget::None,
    )
}

async fn measure_concurrent(path: &Path) -> Result<f64> {
    let store = Store::open(&StoreLocation::file(path), StoreOptions::default()).await?;
    let began = now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| tokio::spawn(append_as_supervisor(store.clone(), number)))
        .collect();
    for task in tasks {
        task.await??;
    }
    let rate = f64::from(TASKS * (APPENDS + 1)) / began.elapsed().as_secs_f64();
    store.close().await?;
    Ok(rate)
}

async fn append_as_supervisor(store: Store, number: u32) -> Result<(), StoreError> {
    let run = RunId::new(format!("r{number:09}"));
    store
        .append(RunEventBatch::new(run.clone(), START, [run_started(&run)]))
        .await?;
    let typical = [sample_event(&run, 0), sample_event(&run, 1)];
    for event in typical.iter().cycle().take(APPENDS as usize) {
        store
            .append(RunEventBatch::new(run.clone(), START, [event.clone()]))
            .await?;
    }
    Ok(())
}

/// Measures the API calls of a hundred sessions, a thousand at once as a gateway writes them.
async fn measure_calls(path: &Path) -> Result<f64> {
    let store = Store::open(&StoreLocation::file(path), StoreOptions::default()).await?;
    let calls: Vec<_> = (0..100_000).map(sample_call).collect();
    let count = calls.len() as f64;
    let began = now();
    for batch in calls.chunks(1000) {
        store.record_calls(batch.to_vec()).await?;
    }
    let rate = count / began.elapsed().as_secs_f64();
    store.close().await?;
    Ok(rate)
}

pub(crate) fn sample_call(number: u32) -> ApiCallRecord {
    let run = RunId::new(format!("r{:09}", number % 100));
    ApiCallRecord {
        call: format!("{number:016x}"),
        session: run.session_id(1),
        run,
        at: Timestamp::from_millis(START.millis() + i64::from(number)),
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
        duration_ms: 2000,
        sent_bytes: 4096,
        tokens: Some(TokenUsage {
            input: 1000,
            cached: 3000,
            output: 200,
            requests: 1,
        }),
        cost_usd: Some(0.01),
    }
}

fn measure_bare_sqlite(path: &Path) -> Result<f64> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE events (run TEXT, seq INTEGER, at INTEGER, payload TEXT, UNIQUE (run, seq));",
    )?;
    let run = RunId::new("r000000001");
    let payload = serde_json::to_string(&sample_event(&run, 1).to_value()?)?;
    let count = TASKS * APPENDS;
    let began = now();
    for batch in 0..count / 100 {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for number in 0..100 {
            let mut statement =
                connection.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3, ?4)")?;
            statement.execute(params![
                run.as_str(),
                batch * 100 + number,
                START.millis(),
                payload
            ])?;
        }
        connection.execute_batch("COMMIT")?;
    }
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}

async fn measure_cold_open(path: &Path) -> Result<Samples> {
    let mut times = Samples::default();
    for number in 0..101 {
        let run = RunId::new(format!("cold{number:06}"));
        let events = [run_started(&run), sample_event(&run, 1)];
        let began = now();
        let store = Store::open(&StoreLocation::file(path), StoreOptions::default()).await?;
        store.append(RunEventBatch::new(run, START, events)).await?;
        store.close().await?;
        times.push(began.elapsed().as_secs_f64());
    }
    Ok(times)
}

pub(crate) fn run_started(run: &RunId) -> Event {
    Event::from(Box::new(RunStarted {
        head: None,
        project: "/home/me/shop".into(),
        kind: RunKind::Command(Box::new(SessionSpec {
            cwd: "/home/me/shop".into(),
            command: vec!["claude".into(), "-p".into(), "fix the tests".into()],
            agent: Some("claude".into()),
            model: Some("claude-sonnet-5-5".into()),
            session: run.session_id(1),
            policy: RetryPolicy::default(),
            origins: Default::default(),
            timeout_ms: Some(600_000),
            idle_timeout_ms: None,
            options: serde_json::Value::Null,
            unrepeatable_reason: None,
            knowledge: "0.1.0".into(),
        })),
    }))
}

/// Returns the start of an attempt, or for every other number its failure.
fn sample_event(run: &RunId, number: u32) -> Event {
    if number.is_multiple_of(2) {
        return Event::from(Box::new(AttemptStarted {
            session: run.session_id(1),
            number,
            command: vec!["claude".into(), "-p".into(), "fix the tests".into()],
            model: Some("claude-sonnet-5-5".into()),
            timeout_ms: Some(600_000),
            cause: None,
            changes: vec!["the timeout was doubled".into()],
            agent_session: None,
            reaper: Some((4711, 99)),
            tree: None,
        }));
    }
    let failed = serde_json::json!({
        "event": "attempt_failed", "session": run.session_id(1), "number": number, "exit_code": 1, "duration_ms": 1234,
        "stdout_bytes": 100, "stderr_bytes": 20, "model": "claude-sonnet-5-5", "used": { "cost_usd": 0.01 },
        "cause": { "kind": "rate_limit", "level": "same" },
        "diagnosis": {
            "kind": "rate_limit", "layer": "agent", "level": "same", "confidence": 0.9,
            "evidence": { "rule": "anthropic.rate_limit", "line": "API Error: 429 rate_limit_error" },
            "fingerprint": "0123456789abcdef", "message": "The rate limit is reached.", "hint": "Wait.", "truncated": false,
        },
    });
    let fields = failed.as_object().cloned().unwrap_or_default();
    Event::from_value(fields)
}
