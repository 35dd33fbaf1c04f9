//! How long what pages ask of the store takes with a million events in it.

use std::path::Path;

use anyhow::Result;
use futures_util::future::try_join_all;
use unstuck_core::episode::Status;
use unstuck_core::event::{CallOutcome, CallRecord, Event, RunId};
use unstuck_core::{Kind, Timestamp};
use unstuck_store::{
    Append, EventFilter, FailureQuery, Location, Options, Order, RecoveryQuery, RunFilter, Store,
};

use crate::measure::{ROUNDS, Samples, moment};
use crate::starting::millis;
use crate::storing::{START, call, started};
use crate::table::{Table, Target};

const RUNS: u32 = 40_000;
const EVENTS: u32 = 25;
const CALLS: u32 = 100_000;
const DAYS: i64 = 90;
const DAY_MS: i64 = 86_400_000;

/// The kinds that fail here, with a line that says so.
const FAILS: [(&str, &str); 6] = [
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

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    table.section("7a. What pages ask, with 1 000 000 events of 90 days and 100 000 calls")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let folder = tempfile::tempdir()?;
    let store = runtime.block_on(filled(&folder.path().join("store.db")))?;
    for (what, question) in QUESTIONS {
        let mut times = Samples::default();
        for _ in 0..ROUNDS {
            let began = moment();
            runtime.block_on(answer(&store, question))?;
            times.push(began.elapsed().as_secs_f64());
        }
        table.row(what, &times.map(millis), "ms", Target::Open)?;
    }
    runtime.block_on(store.close())?;
    Ok(())
}

#[derive(Clone, Copy)]
enum Question {
    Failures,
    FailuresOfWeek,
    FailuresOfProject,
    FailureList,
    Recoveries,
    Projects,
    Runs,
    RunsThatFailed,
    Events,
}

const QUESTIONS: [(&str, Question); 9] = [
    ("failures, all", Question::Failures),
    ("failures, the last 7 days", Question::FailuresOfWeek),
    (
        "failures, one project and kind",
        Question::FailuresOfProject,
    ),
    ("100 single failures", Question::FailureList),
    ("recoveries", Question::Recoveries),
    ("projects", Question::Projects),
    ("50 runs", Question::Runs),
    (
        "50 runs of one project that failed",
        Question::RunsThatFailed,
    ),
    ("100 newest events", Question::Events),
];

async fn answer(store: &Store, question: Question) -> Result<()> {
    let week = Timestamp::from_millis(START.millis() + (DAYS - 7) * DAY_MS);
    let of_project = FailureQuery {
        project: Some(project(7)),
        kind: Some(Kind::Timeout),
        ..FailureQuery::default()
    };
    match question {
        Question::Failures => drop(store.failures(&FailureQuery::default()).await?),
        Question::FailuresOfWeek => {
            let query = FailureQuery {
                since: Some(week),
                ..FailureQuery::default()
            };
            store.failures(&query).await?;
        }
        Question::FailuresOfProject => drop(store.failures(&of_project).await?),
        Question::FailureList => drop(store.failure_page(&of_project, None, 100).await?),
        Question::Recoveries => drop(store.recoveries(&RecoveryQuery::default()).await?),
        Question::Projects => drop(store.projects().await?),
        Question::Runs => drop(store.run_page(&RunFilter::default()).await?),
        Question::RunsThatFailed => {
            let filter = RunFilter {
                project: Some(project(7)),
                status: vec![Status::Failed, Status::Interrupted],
                ..RunFilter::default()
            };
            store.run_page(&filter).await?;
        }
        Question::Events => {
            let filter = EventFilter {
                order: Order::NewestFirst,
                limit: Some(100),
                ..EventFilter::default()
            };
            store.placed(&filter).await?;
        }
    }
    Ok(())
}

async fn filled(path: &Path) -> Result<Store> {
    let store = Store::open(&Location::file(path), Options::default()).await?;
    let numbers: Vec<u32> = (0..RUNS).collect();
    for some in numbers.chunks(500) {
        let appends = some.iter().map(|number| store.append(history(*number)));
        try_join_all(appends).await?;
    }
    let calls: Vec<_> = (0..CALLS).map(client_call).collect();
    for some in calls.chunks(1000) {
        store.record_calls(some.to_vec()).await?;
    }
    Ok(store)
}

/// One run: a few failures, a recovery each, and an end.
fn history(number: u32) -> Append {
    let run = RunId::new(format!("p{number:09}"));
    let at = START.millis() + i64::from(number) * (DAYS * DAY_MS / i64::from(RUNS));
    let model = format!("model-{}", number % 5);
    let mut events = vec![begun(&run, number)];
    for attempt in 1..EVENTS {
        events.push(match attempt {
            odd if odd % 2 == 1 => json(serde_json::json!({
                "event": "attempt_started", "session": run.session(1), "number": odd,
                "command": ["claude", "-p", "fix the tests"], "model": model,
            })),
            last if last == EVENTS - 1 => json(serde_json::json!({
                "event": "run_finished", "outcome": if number.is_multiple_of(9) { "failed" } else { "recovered" },
                "exit_code": 0, "reason": "It is done.", "attempts": 12, "retry_count": 6, "cost_usd": 0.5,
                "duration_ms": 120_000,
            })),
            even => ended(&run, &model, number, even),
        });
    }
    Append::new(run, Timestamp::from_millis(at), events)
}

fn begun(run: &RunId, number: u32) -> Event {
    let mut event = started(run);
    if let Event::RunStarted(begun) = &mut event {
        begun.project = project(number);
        if let unstuck_core::event::Work::Command(spec) = &mut begun.work {
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

/// Every other attempt fails, and the next one helps.
fn ended(run: &RunId, model: &str, number: u32, attempt: u32) -> Event {
    let mut end = serde_json::json!({
        "event": "attempt_succeeded", "session": run.session(1), "number": attempt, "exit_code": 0,
        "duration_ms": 1234, "stdout_bytes": 100, "stderr_bytes": 20, "model": model, "used": { "cost_usd": 0.01 },
        "answering": { "kind": "rate_limit", "level": "same" },
    });
    if attempt.is_multiple_of(4) {
        return json(end);
    }
    let which = (number + attempt) as usize;
    let (kind, line) = FAILS[which % FAILS.len()];
    end["event"] = "attempt_failed".into();
    end["diagnosis"] = serde_json::json!({
        "kind": kind, "layer": "agent", "level": "same", "confidence": 0.9,
        "evidence": { "rule": "a.rule", "line": format!("{line} ({})", ["a", "b", "c"][which % 3]) },
        "fingerprint": format!("{kind}:{}", which % 60), "message": "It failed.", "hint": "Wait.", "truncated": false,
    });
    json(end)
}

fn client_call(number: u32) -> CallRecord {
    let at = START.millis() + i64::from(number) * (DAYS * DAY_MS / i64::from(CALLS));
    CallRecord {
        at: Timestamp::from_millis(at),
        outcome: match number % 20 {
            0 => CallOutcome::Failed,
            1 => CallOutcome::Recovered,
            _ => CallOutcome::Answered,
        },
        kind: (number % 20 < 2).then_some(Kind::RateLimit),
        ..call(number)
    }
}

fn project(number: u32) -> String {
    format!("/home/me/project-{}", number % 20)
}

fn json(value: serde_json::Value) -> Event {
    Event::from_value(value.as_object().cloned().unwrap_or_default())
}
