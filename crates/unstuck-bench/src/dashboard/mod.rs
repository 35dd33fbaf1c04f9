//! Measures the latency of dashboard pages and their store queries, with a million events in the store.

mod history;

use std::path::Path;

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;
use unstuck_core::views::RunStatus;
use unstuck_core::{FailureKind, Timestamp};
use unstuck_run::clock::Clock;
use unstuck_store::{
    EventFilter, EventOrder, FailureQuery, RecoveryStatisticsQuery, RunFilter, Store,
};

use crate::load_client::Client;
use crate::measure::{ROUNDS, Samples, now};
use crate::process_fixture::ProcessFixture;
use crate::startup::millis;
use crate::table::{FigureTable, FigureTarget};
use history::{DAY_MS, project};

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store.db");
    let at = Clock::System.reading().at;
    let store = runtime.block_on(history::fill_store(&path, at))?;
    table.section("7a. Dashboard queries: 1,000,000 events in 90 days, 100,000 calls")?;
    for (what, question) in STORE_QUERIES {
        let mut times = Samples::default();
        for _ in 0..ROUNDS {
            let began = now();
            runtime.block_on(run_query(&store, question, at))?;
            times.push(began.elapsed().as_secs_f64());
        }
        table.row(what, &times.map(millis), "ms", FigureTarget::None)?;
    }
    runtime.block_on(store.close())?;
    table.section("7b. Whole pages and API responses of `unstuck serve`, same store")?;
    pages(&runtime, &path, table)
}

/// Paths that a browser or a program requests.
const PATHS: [(&str, &str); 14] = [
    ("page: Now", "/"),
    ("page: Runs", "/runs"),
    ("page: run", "/runs/RUN"),
    ("page: session", "/sessions/RUN-1"),
    ("page: Inbox", "/inbox"),
    ("page: request", "/inbox/RUN-e1"),
    ("page: Failures", "/failures"),
    ("page: Failures, one year", "/failures?days=366"),
    ("page: Policies", "/policies"),
    ("page: Settings", "/settings"),
    ("GET /api/sessions", "/api/sessions"),
    ("GET /api/escalations", "/api/escalations"),
    ("GET /api/analytics/failures", "/api/analytics/failures"),
    ("GET /api/analytics/recovery", "/api/analytics/recovery"),
];

fn pages(runtime: &Runtime, store: &Path, table: &mut FigureTable) -> Result<()> {
    let stage = ProcessFixture::new()?;
    let serving = stage.start_dashboard(store)?;
    let address = serving.address;
    let run = history::waiting_run();
    for (what, path) in PATHS {
        let path = path.replace("RUN", run.as_str());
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let mut times = Samples::default();
        for _ in 0..ROUNDS {
            // A separate connection, as for the first page of a browser.
            let got = runtime.block_on(Client::new(address).ask(request.as_bytes()))?;
            ensure!(got.status == 200, "{path}: status {}", got.status);
            times.push(got.total_seconds);
        }
        table.row(what, &times.map(millis), "ms", FigureTarget::AtMost(100.0))?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum StoreQuery {
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

const STORE_QUERIES: [(&str, StoreQuery); 9] = [
    ("failures, all", StoreQuery::Failures),
    ("failures, last 7 days", StoreQuery::FailuresOfWeek),
    (
        "failures, one project and kind",
        StoreQuery::FailuresOfProject,
    ),
    ("100 individual failures", StoreQuery::FailureList),
    ("recoveries", StoreQuery::Recoveries),
    ("projects", StoreQuery::Projects),
    ("50 runs", StoreQuery::Runs),
    ("50 failed runs of one project", StoreQuery::RunsThatFailed),
    ("100 newest events", StoreQuery::Events),
];

async fn run_query(store: &Store, question: StoreQuery, now: Timestamp) -> Result<()> {
    let week = Timestamp::from_millis(now.millis() - 7 * DAY_MS);
    let of_project = FailureQuery {
        project: Some(project(7)),
        kind: Some(FailureKind::Timeout),
        ..FailureQuery::default()
    };
    match question {
        StoreQuery::Failures => drop(store.failure_analytics(&FailureQuery::default()).await?),
        StoreQuery::FailuresOfWeek => {
            let query = FailureQuery {
                since: Some(week),
                ..FailureQuery::default()
            };
            store.failure_analytics(&query).await?;
        }
        StoreQuery::FailuresOfProject => drop(store.failure_analytics(&of_project).await?),
        StoreQuery::FailureList => drop(store.failure_page(&of_project, None, 100).await?),
        StoreQuery::Recoveries => drop(
            store
                .recovery_report(&RecoveryStatisticsQuery::default())
                .await?,
        ),
        StoreQuery::Projects => drop(store.projects().await?),
        StoreQuery::Runs => drop(store.run_page(&RunFilter::default()).await?),
        StoreQuery::RunsThatFailed => {
            let filter = RunFilter {
                project: Some(project(7)),
                status: vec![RunStatus::Failed, RunStatus::Interrupted],
                ..RunFilter::default()
            };
            store.run_page(&filter).await?;
        }
        StoreQuery::Events => {
            let filter = EventFilter {
                order: EventOrder::NewestFirst,
                limit: Some(100),
                ..EventFilter::default()
            };
            store.log_entries(&filter).await?;
        }
    }
    Ok(())
}
