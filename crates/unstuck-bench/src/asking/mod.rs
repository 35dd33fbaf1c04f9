//! How long the pages of the dashboard take, and what they ask of the store, with a million events in it.

mod history;

use std::path::Path;

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;
use unstuck_core::episode::Status;
use unstuck_core::{Kind, Timestamp};
use unstuck_run::clock::Clock;
use unstuck_store::{EventFilter, FailureQuery, Order, RecoveryQuery, RunFilter, Store};

use crate::load::Client;
use crate::measure::{ROUNDS, Samples, moment};
use crate::processes::Stage;
use crate::starting::millis;
use crate::table::{Table, Target};
use history::{DAY_MS, project};

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store.db");
    let now = Clock::System.now().at;
    let store = runtime.block_on(history::filled(&path, now))?;
    table.section("7a. What pages ask, with 1 000 000 events of 90 days and 100 000 calls")?;
    for (what, question) in QUESTIONS {
        let mut times = Samples::default();
        for _ in 0..ROUNDS {
            let began = moment();
            runtime.block_on(answer(&store, question, now))?;
            times.push(began.elapsed().as_secs_f64());
        }
        table.row(what, &times.map(millis), "ms", Target::Open)?;
    }
    runtime.block_on(store.close())?;
    table.section("7b. Pages and answers of `unstuck serve` on that store, whole")?;
    pages(&runtime, &path, table)
}

/// What a browser or a program asks for.
const PATHS: [(&str, &str); 14] = [
    ("page Now", "/"),
    ("page Runs", "/runs"),
    ("page of a run", "/runs/RUN"),
    ("page of a session", "/sessions/RUN-1"),
    ("page Inbox", "/inbox"),
    ("page of a question", "/inbox/RUN-e1"),
    ("page Failures", "/failures"),
    ("page Failures, a year", "/failures?days=366"),
    ("page Policies", "/policies"),
    ("page Settings", "/settings"),
    ("GET /api/sessions", "/api/sessions"),
    ("GET /api/escalations", "/api/escalations"),
    ("GET /api/analytics/failures", "/api/analytics/failures"),
    ("GET /api/analytics/recovery", "/api/analytics/recovery"),
];

fn pages(runtime: &Runtime, store: &Path, table: &mut Table) -> Result<()> {
    let stage = Stage::new()?;
    let serving = stage.dashboard(store)?;
    let address = serving.address;
    let run = history::asking();
    for (what, path) in PATHS {
        let path = path.replace("RUN", run.as_str());
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let mut times = Samples::default();
        for _ in 0..ROUNDS {
            // A connection of its own, as the first page of a browser has.
            let got = runtime.block_on(Client::new(address).ask(request.as_bytes()))?;
            ensure!(got.status == 200, "{path}: status {}", got.status);
            times.push(got.whole);
        }
        table.row(what, &times.map(millis), "ms", Target::AtMost(100.0))?;
    }
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

async fn answer(store: &Store, question: Question, now: Timestamp) -> Result<()> {
    let week = Timestamp::from_millis(now.millis() - 7 * DAY_MS);
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
