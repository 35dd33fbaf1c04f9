//! Measures listing a thousand pending escalations.
//!
//! The baseline is a plain SELECT of the same rows, without parsing.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, OpenFlags};
use unstuck_core::event::{Event, RunId};
use unstuck_store::{EscalationFilter, RunEventBatch, Store, StoreLocation, StoreOptions};

use crate::measure::{ROUNDS, Samples, now};
use crate::startup::{millis, program_command, sibling_program};
use crate::store::{START, run_started};
use crate::table::{FigureTable, FigureTarget};

const QUESTIONS: u32 = 1_000;

pub(crate) fn measure(table: &mut FigureTable) -> Result<()> {
    table.section("11. Inbox with 1,000 pending requests")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store.db");
    runtime.block_on(fill_store(&path))?;
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    let (mut text, mut json) = (Samples::default(), Samples::default());
    let program = sibling_program("unstuck").filter(|path| path.exists());
    for _ in 0..ROUNDS {
        ours.push(runtime.block_on(time_store_list(&path))?);
        theirs.push(time_bare_select(&path)?);
        if let Some(program) = &program {
            text.push(time_program(program, &path, &[])?);
            json.push(time_program(program, &path, &["--json"])?);
        }
    }
    table.row(
        "open, list, close",
        &ours.map(millis),
        "ms",
        FigureTarget::None,
    )?;
    table.row("bare SELECT", &theirs.map(millis), "ms", FigureTarget::None)?;
    table.row(
        "unstuck ÷ bare",
        &ours.ratio_to(&theirs),
        "×",
        FigureTarget::None,
    )?;
    if program.is_none() {
        return table.note("unstuck is not built: `unstuck inbox` skipped");
    }
    let most = FigureTarget::AtMost(50.0);
    table.row("unstuck inbox", &text.map(millis), "ms", most)?;
    table.row("unstuck inbox --json", &json.map(millis), "ms", most)?;
    table.row(
        "unstuck inbox ÷ bare",
        &text.ratio_to(&theirs),
        "×",
        FigureTarget::None,
    )
}

async fn fill_store(path: &Path) -> Result<()> {
    let store = Store::open(&StoreLocation::file(path), StoreOptions::default()).await?;
    for number in 0..QUESTIONS {
        let run = RunId::new(format!("q{number:09}"));
        let events = [run_started(&run), escalation_event(&run)];
        let at = START.after(std::time::Duration::from_secs(number.into()));
        store.append(RunEventBatch::new(run, at, events)).await?;
    }
    store.close().await?;
    Ok(())
}

/// Returns an escalation of typical length.
pub(crate) fn escalation_event(run: &RunId) -> Event {
    let fields = serde_json::json!({
        "event": "recovery_escalated", "id": format!("{run}-e1"), "session": run.session_id(1),
        "type": "recovery_approval_required", "trigger": "RECOVERY", "kind": "lockfile_drift", "why": "repair",
        "reason": "Lockfile out of sync: `rm -rf node_modules && npm ci` may fix this; approval required.",
        "awaiting": "human", "repair": "r1", "doing": "npm test -- --runInBand packages/web",
        "evidence": "npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync",
        "tried": [
            { "what": "first attempt", "why": "Lockfile out of sync (npm): npm error code EUSAGE" },
            { "what": "retry unchanged after 2 s", "why": "Lockfile out of sync (npm): npm error code EUSAGE" },
        ],
        "command": "rm -rf node_modules && npm ci", "fingerprint": "0123456789abcdef", "hash": "fedcba9876543210",
        "choices": [
            { "answer": "approve", "does": "run `rm -rf node_modules && npm ci` once, then retry" },
            { "answer": "reject", "does": "retry without running it" },
            { "answer": "resolve", "does": "retry: issue fixed manually" },
            { "answer": "skip", "does": "give up and return the original exit code" },
            { "answer": "abort", "does": "abort the run" },
        ],
    });
    Event::from_value(fields.as_object().cloned().unwrap_or_default())
}

async fn time_store_list(path: &Path) -> Result<f64> {
    let began = now();
    let location = StoreLocation::file(path);
    let store = Store::open_existing(&location, StoreOptions::default()).await?;
    let store = store.context("store not found")?;
    let found = store.escalations(&EscalationFilter::default()).await?;
    store.close().await?;
    ensure!(found.len() == QUESTIONS as usize, "{} pending", found.len());
    Ok(began.elapsed().as_secs_f64())
}

fn time_bare_select(path: &Path) -> Result<f64> {
    let began = now();
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut statement = connection
        .prepare("SELECT run, id, at, asked FROM questions WHERE answered IS NULL ORDER BY at")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(3).map(|text| text.len()))?;
    let bytes = rows.sum::<rusqlite::Result<usize>>()?;
    ensure!(bytes > 0, "no pending requests");
    Ok(began.elapsed().as_secs_f64())
}

/// Returns the seconds that the program needs to list all of them.
fn time_program(program: &Path, store: &Path, options: &[&str]) -> Result<f64> {
    let mut command = program_command(program);
    command.arg("--store").arg(store).arg("inbox").args(options);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let began = now();
    let output = command.output()?;
    let seconds = began.elapsed().as_secs_f64();
    ensure!(
        output.status.success(),
        "{command:?} failed with {}",
        output.status
    );
    ensure!(output.stdout.len() > 100_000, "the list is incomplete");
    Ok(seconds)
}
