//! Measures the store: `cargo run --release -p unstuck-store --example measure [FOLDER]`.
//!
//! Many tasks append typical events, each awaiting its own acknowledgement; beside it stands bare SQLite that is given
//! the same payloads in batches of 100, without folds or counts. Then: open, append two events and close, from cold.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and prints what it found"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use unstuck_core::event::{AttemptStarted, Event, RunId, RunStarted};
use unstuck_core::{RetryPolicy, Timestamp};
use unstuck_store::{Append, Location, Options, Store, StoreError};

const TASKS: u32 = 500;
const APPENDS: u32 = 160;
const ROUNDS: usize = 5;
const START: Timestamp = Timestamp::from_seconds(1_794_777_609);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder
        .unwrap_or_else(std::env::temp_dir)
        .join(format!("measure-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    for round in 0..ROUNDS {
        let store = concurrent(&folder.join(format!("store-{round}.db"))).await?;
        let bare = bare(&folder.join(format!("bare-{round}.db")))?;
        println!("store {store:.0} events/s, bare SQLite in batches of 100 {bare:.0} events/s");
    }
    println!(
        "cold open, two events, close: {:?}",
        cold(&folder.join("store-0.db")).await?
    );
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

async fn concurrent(path: &Path) -> Result<f64, Box<dyn Error>> {
    let store = Store::open(&Location::file(path), Options::default()).await?;
    let began = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| tokio::spawn(supervise(store.clone(), number)))
        .collect();
    for task in tasks {
        task.await??;
    }
    let rate = per_second(TASKS * (APPENDS + 1), began.elapsed());
    store.close().await?;
    Ok(rate)
}

async fn supervise(store: Store, number: u32) -> Result<(), StoreError> {
    let run = RunId::new(format!("r{number:09}"));
    store
        .append(Append::new(run.clone(), START, [started(&run)]))
        .await?;
    let typical = [event(&run, 0), event(&run, 1)];
    for event in typical.iter().cycle().take(APPENDS as usize) {
        store
            .append(Append::new(run.clone(), START, [event.clone()]))
            .await?;
    }
    Ok(())
}

fn bare(path: &Path) -> Result<f64, Box<dyn Error>> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE events (run TEXT, seq INTEGER, at INTEGER, payload TEXT, UNIQUE (run, seq));",
    )?;
    let run = RunId::new("r000000001");
    let payload = serde_json::to_string(&event(&run, 1).to_value()?)?;
    let count = TASKS * APPENDS;
    let began = Instant::now();
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
    Ok(per_second(count, began.elapsed()))
}

/// The median of many.
async fn cold(path: &Path) -> Result<Duration, Box<dyn Error>> {
    let mut times = Vec::new();
    for number in 0..101 {
        let run = RunId::new(format!("cold{number:06}"));
        let events = [started(&run), event(&run, 1)];
        let began = Instant::now();
        let store = Store::open(&Location::file(path), Options::default()).await?;
        store.append(Append::new(run, START, events)).await?;
        store.close().await?;
        times.push(began.elapsed());
    }
    times.sort();
    Ok(times[50])
}

fn per_second(count: u32, time: Duration) -> f64 {
    f64::from(count) / time.as_secs_f64()
}

fn started(run: &RunId) -> Event {
    Event::from(Box::new(RunStarted {
        project: "/home/me/shop".into(),
        cwd: "/home/me/shop".into(),
        command: vec!["claude".into(), "-p".into(), "fix the tests".into()],
        agent: Some("claude".into()),
        model: Some("claude-sonnet-5-5".into()),
        session: run.session(1),
        policy: RetryPolicy::default(),
        origins: Default::default(),
        timeout_ms: Some(600_000),
        idle_timeout_ms: None,
        options: serde_json::Value::Null,
        unrepeatable: None,
        knowledge: "0.1.0".into(),
    }))
}

/// A try that began, and every other one that failed.
fn event(run: &RunId, number: u32) -> Event {
    if number.is_multiple_of(2) {
        return Event::from(Box::new(AttemptStarted {
            session: run.session(1),
            number,
            command: vec!["claude".into(), "-p".into(), "fix the tests".into()],
            model: Some("claude-sonnet-5-5".into()),
            timeout_ms: Some(600_000),
            answering: None,
            changes: vec!["the timeout was doubled".into()],
            reaper: Some((4711, 99)),
        }));
    }
    let failed = serde_json::json!({
        "event": "attempt_failed", "session": run.session(1), "number": number, "exit_code": 1, "duration_ms": 1234,
        "stdout_bytes": 100, "stderr_bytes": 20, "model": "claude-sonnet-5-5", "used": { "cost_usd": 0.01 },
        "answering": { "kind": "rate_limit", "level": "same" },
        "diagnosis": {
            "kind": "rate_limit", "layer": "agent", "level": "same", "confidence": 0.9,
            "evidence": { "rule": "anthropic.rate_limit", "line": "API Error: 429 rate_limit_error" },
            "fingerprint": "0123456789abcdef", "message": "The rate limit is reached.", "hint": "Wait.", "truncated": false,
        },
    });
    match failed {
        serde_json::Value::Object(fields) => Event::from_value(fields),
        _ => unreachable!("it is an object"),
    }
}
