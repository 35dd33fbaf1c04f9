//! Older stores are migrated after a backup.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rusqlite::{Connection, params};
use unstuck_core::Kind;
use unstuck_core::event::{CallOutcome, CallRecord, Event, EventRecord};
use unstuck_core::views::RunSummary;
use unstuck_store::{
    Dimension, FailureQuery, MaintenanceReport, MaintenanceTask, RecoveryQuery, StatsQuery,
};

use super::bare;
use crate::contract::{Place, wait};
use crate::samples::{
    START, answering, append, attempt_started, builder_started, call_failed, called, end, failed,
    pipeline_started, run, started, started_in, succeeded,
};

const FIRST_SCHEMA: &str = include_str!("../../../migrations/sqlite/0001_events.sql");

const FIFTH_SCHEMA: [&str; 5] = [
    FIRST_SCHEMA,
    include_str!("../../../migrations/sqlite/0002_hourly.sql"),
    include_str!("../../../migrations/sqlite/0003_outbox.sql"),
    include_str!("../../../migrations/sqlite/0004_questions.sql"),
    include_str!("../../../migrations/sqlite/0005_calls.sql"),
];

/// Returns a store of schema 1 with one run.
fn old_store() -> (Place, Vec<EventRecord>) {
    let place = Place::new();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    let connection = bare(&place);
    connection.execute_batch(FIRST_SCHEMA).unwrap();
    connection
        .pragma_update(None, "application_id", 0x756e_7374)
        .unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    let run = run(1);
    let limited = failed(end(&run, 200, Some(0.5), None), Kind::RateLimit);
    let events = [
        started(&run),
        limited,
        succeeded(end(&run, 100, None, None)),
    ];
    let recorded: Vec<_> = (1..)
        .zip(events)
        .map(|(seq, event)| keep(&connection, seq, event))
        .collect();
    let view = RunSummary::from_events(&recorded).unwrap();
    let row = params![
        view.id.as_str(),
        view.project,
        START.millis(),
        serde_json::to_string(&view).unwrap()
    ];
    let sql = "INSERT INTO runs VALUES (?1, ?2, 'running', 'rate_limit', ?3, ?3, NULL, ?4)";
    connection.execute(sql, row).unwrap();
    (place, recorded)
}

fn keep(connection: &Connection, seq: u64, event: Event) -> EventRecord {
    let (run, payload) = (
        run(1),
        serde_json::to_string(&event.to_value().unwrap()).unwrap(),
    );
    let sql = "INSERT INTO events (run, seq, at, v, event, payload) VALUES (?1, ?2, ?3, 1, ?4, ?5)";
    let row = params![
        run.as_str(),
        seq as i64,
        START.millis(),
        event.name(),
        payload
    ];
    connection.execute(sql, row).unwrap();
    EventRecord {
        version: 1,
        run,
        seq,
        at: START,
        event,
    }
}

/// Returns a store of schema 5 with everything that it can hold.
fn fifth_store(present: &Place) -> Place {
    let place = Place::new();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    let connection = bare(&place);
    for schema in FIFTH_SCHEMA {
        connection.execute_batch(schema).unwrap();
    }
    let attach = "ATTACH ?1 AS present";
    let file = present.file().display().to_string();
    connection.execute(attach, [file]).unwrap();
    let old = "SELECT id, call, run, session, project, at, protocol, endpoint, upstream, asked_model, model, stream,
        outcome, status, kind, attempts, waited_ms, first_byte_ms, duration_ms, sent_bytes, input_tokens,
        cached_tokens, output_tokens, cost_nanos";
    connection
        .execute_batch(&format!(
            "INSERT INTO events SELECT * FROM present.events;
            INSERT INTO sessions SELECT * FROM present.sessions;
            INSERT INTO runs SELECT * FROM present.runs;
            INSERT INTO hourly SELECT * FROM present.hourly WHERE outcome <> 'recovered';
            INSERT INTO questions SELECT * FROM present.questions;
            INSERT INTO calls {old} FROM present.calls;
            INSERT INTO spent SELECT * FROM present.spent;
            PRAGMA application_id = 0x756e7374; PRAGMA user_version = 5;"
        ))
        .unwrap();
    place
}

/// Dashboard counts include events from before they were kept.
#[test]
fn failures_before_the_migration_are_counted() {
    let present = Place::new();
    let store = wait(present.open());
    let (driven, client) = (run(1), run(2));
    let answer = answering(Kind::Timeout, None);
    let helped = end(&driven, 10, Some(0.5), Some(answer));
    let events = [
        pipeline_started("/home/me/shop"),
        builder_started(&driven, "Build it"),
        attempt_started(&driven, 1),
        failed(end(&driven, 10, None, None), Kind::Timeout),
        succeeded(helped),
    ];
    wait(store.append(append(&driven, events))).unwrap();
    let line = "429: try again in 7 s";
    let events = [started_in(&client, ""), call_failed(&client, "a", line)];
    wait(store.append(append(&client, events))).unwrap();
    let given_up = |run| CallRecord {
        outcome: CallOutcome::Failed,
        kind: Some(Kind::RateLimit),
        ..called(run, "a", 2)
    };
    let calls = vec![given_up(&client), given_up(&driven)];
    wait(store.record_calls(calls)).unwrap();
    let query = FailureQuery::default();
    let expected = wait(store.failure_analytics(&query)).unwrap();
    assert_eq!(expected.total_failures, 2);
    let listed = wait(store.failure_page(&query, None, 9)).unwrap();
    let recovered = wait(store.recovery_report(&RecoveryQuery::default())).unwrap();
    assert_eq!(recovered.total.recoveries, 1);
    let projects = wait(store.projects()).unwrap();
    // Usage reported by an attempt, and a call without an attempt.
    assert_eq!(projects[0].cost_usd, 0.75);
    wait(store.close()).unwrap();

    let place = fifth_store(&present);
    let store = wait(place.open());
    assert_eq!(wait(store.failure_analytics(&query)).unwrap(), expected);
    assert_eq!(wait(store.failure_page(&query, None, 9)).unwrap(), listed);
    assert_eq!(wait(store.projects()).unwrap(), projects);
    let filled = wait(store.recovery_report(&RecoveryQuery::default())).unwrap();
    assert_eq!(filled, recovered);
    let checked = wait(store.maintain(MaintenanceTask::Check)).unwrap();
    assert!(matches!(checked, MaintenanceReport::Checked { findings, .. } if findings.is_empty()));
}

fn aside(place: &Place, suffix: &str) -> PathBuf {
    place.file().with_file_name(format!("unstuck.db{suffix}"))
}

#[test]
fn older_store_is_backed_up_and_migrated() {
    let (place, recorded) = old_store();
    let store = wait(place.open());
    assert_eq!(wait(store.load(&run(1))).unwrap(), recorded);
    let query = StatsQuery {
        group_by: vec![Dimension::Kind],
        ..StatsQuery::default()
    };
    let lines = wait(store.stats(&query)).unwrap();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line.kind.as_deref(), line.count, line.duration_ms))
        .collect();
    assert_eq!(told, [(Some("none"), 1, 100), (Some("rate_limit"), 1, 200)]);
    let next = wait(store.append(append(&run(1), [succeeded(end(&run(1), 1, None, None))])));
    assert_eq!(next.unwrap()[0].seq, 4);
    let checked = wait(store.maintain(MaintenanceTask::Check)).unwrap();
    assert!(matches!(checked, MaintenanceReport::Checked { findings, .. } if findings.is_empty()));

    let copy = aside(&place, ".bak-v1");
    assert_eq!(
        fs::metadata(&copy).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let copy = Connection::open(copy).unwrap();
    let version: u32 = copy
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    let events: u32 = copy
        .query_row("SELECT count(*) FROM events", [], |row| row.get(0))
        .unwrap();
    assert_eq!((version, events), (1, 3));
}

#[test]
fn existing_backup_is_not_overwritten() {
    let (place, _) = old_store();
    fs::write(aside(&place, ".bak-v1"), "dear to me").unwrap();
    wait(place.open());
    assert_eq!(fs::read(aside(&place, ".bak-v1")).unwrap(), b"dear to me");
    assert!(aside(&place, ".bak-v1.2").exists());
}

#[test]
fn current_store_is_not_backed_up() {
    let place = Place::new();
    wait(async { place.open().await.close().await }).unwrap();
    wait(place.open());
    let names = fs::read_dir(place.file().parent().unwrap()).unwrap();
    let copies = names.filter(|name| {
        name.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains("bak")
    });
    assert_eq!(copies.count(), 0);
}
