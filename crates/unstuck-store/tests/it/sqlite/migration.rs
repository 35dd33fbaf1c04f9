//! Older stores are migrated after a backup.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, params};
use unstuck_core::FailureKind;
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord, Event, EventRecord};
use unstuck_core::views::{FailureAnalytics, RunSummary};
use unstuck_store::{
    CallFilter, CostSummary, EscalationFilter, EscalationRow, EscalationStatusFilter, FailurePage,
    FailureQuery, MaintenanceReport, MaintenanceTask, NewOutboxMessage, OutboxFilter,
    OutboxMessage, ProjectSummary, RecoveryStatisticsQuery, RecoveryStatisticsReport, RunFilter,
    SpendingQuery, StatisticsDimension, StatsQuery, Store, StoredCall,
};

use super::bare;
use crate::contract::questions::{answer, escalation_opened};
use crate::contract::{Place, wait};
use crate::samples::{
    START, answering, append, attempt_started, builder_started, call_failed, called, end, failed,
    later, pipeline_started, run, started, started_in, succeeded,
};

/// The migrations up to the last schema before the present one.
const MIGRATIONS: [&str; 11] = [
    include_str!("../../../migrations/sqlite/0001_events.sql"),
    include_str!("../../../migrations/sqlite/0002_hourly.sql"),
    include_str!("../../../migrations/sqlite/0003_outbox.sql"),
    include_str!("../../../migrations/sqlite/0004_questions.sql"),
    include_str!("../../../migrations/sqlite/0005_calls.sql"),
    include_str!("../../../migrations/sqlite/0006_dashboard.sql"),
    include_str!("../../../migrations/sqlite/0007_many_questions.sql"),
    include_str!("../../../migrations/sqlite/0008_daily.sql"),
    include_str!("../../../migrations/sqlite/0009_upstreams.sql"),
    include_str!("../../../migrations/sqlite/0010_told.sql"),
    include_str!("../../../migrations/sqlite/0011_truncated_calls.sql"),
];

/// Returns a store of schema 1 with one run.
fn old_store() -> (Place, Vec<EventRecord>) {
    let place = Place::new();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    let connection = bare(&place);
    connection.execute_batch(MIGRATIONS[0]).unwrap();
    connection
        .pragma_update(None, "application_id", 0x756e_7374)
        .unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    let run = run(1);
    let limited = failed(end(&run, 200, Some(0.5), None), FailureKind::RateLimit);
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

/// Returns a store of an older schema with everything of a present store that it can hold.
fn downgraded_store(present: &Place, version: usize) -> Place {
    let place = Place::new();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    let connection = bare(&place);
    for schema in &MIGRATIONS[..version] {
        connection.execute_batch(schema).unwrap();
    }
    let attach = "ATTACH ?1 AS present";
    let file = present.file().display().to_string();
    connection.execute(attach, [file]).unwrap();
    let tables =
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name <> 'sqlite_sequence'";
    for table in texts(&connection, tables) {
        let count = column_names(&connection, "main", &table).len();
        // Columns are renamed and added at the end, never moved.
        let columns = column_names(&connection, "present", present_name(&table));
        let sql = format!(
            "INSERT INTO main.{table} SELECT {} FROM present.{}",
            columns[..count].join(", "),
            present_name(&table)
        );
        connection.execute(&sql, []).unwrap();
    }
    if (2..6).contains(&version) {
        let sql = "DELETE FROM hourly WHERE outcome = 'recovered'";
        connection.execute(sql, []).unwrap();
    }
    if (5..11).contains(&version) {
        for table in ["calls", "spent"] {
            let sql = format!("UPDATE {table} SET outcome = 'cut' WHERE outcome = 'truncated'");
            assert_eq!(connection.execute(&sql, []).unwrap(), 1);
        }
    }
    connection
        .execute_batch(&format!(
            "PRAGMA application_id = 0x756e7374; PRAGMA user_version = {version};"
        ))
        .unwrap();
    place
}

/// Returns the present name of a table of an older schema.
fn present_name(table: &str) -> &str {
    table
}

fn column_names(connection: &Connection, schema: &str, table: &str) -> Vec<String> {
    let sql = format!("SELECT name FROM pragma_table_info('{table}', '{schema}') ORDER BY cid");
    texts(connection, &sql)
}

fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Returns a store in which every table but those of settings and upstreams has rows.
fn present_store() -> Place {
    let place = Place::new();
    let store = wait(place.open());
    let (driven, client) = (run(1), run(2));
    let cause = answering(FailureKind::Timeout, None);
    let helped = end(&driven, 10, Some(0.5), Some(cause));
    let events = [
        pipeline_started("/home/me/shop"),
        builder_started(&driven, "Build it"),
        attempt_started(&driven, 1),
        failed(end(&driven, 10, None, None), FailureKind::Timeout),
        escalation_opened(&driven, 1),
        escalation_opened(&driven, 2),
        succeeded(helped),
    ];
    let message = NewOutboxMessage {
        event: 4,
        event_name: "escalation".into(),
        target: "command".into(),
        body: "a request".into(),
        group: "requests".into(),
        window: Duration::ZERO,
    };
    let append_events = append(&driven, events).with_messages(vec![message]);
    wait(store.append(append_events)).unwrap();
    wait(store.append(answer(&driven, 1, "mia", later(1)))).unwrap();
    let line = "429: try again in 7 s";
    let events = [started_in(&client, ""), call_failed(&client, "a", line)];
    wait(store.append(append(&client, events))).unwrap();
    let given_up = |run| ApiCallRecord {
        outcome: ApiCallOutcome::Failed,
        kind: Some(FailureKind::RateLimit),
        ..called(run, "a", 2)
    };
    let truncated = ApiCallRecord {
        outcome: ApiCallOutcome::Truncated,
        ..called(&client, "b", 3)
    };
    let calls = vec![given_up(&client), given_up(&driven), truncated];
    wait(store.record_calls(calls)).unwrap();
    let minute = Duration::from_secs(60);
    wait(store.claim_probe("https://api.example", later(4), minute)).unwrap();
    wait(store.close()).unwrap();
    place
}

/// The results of the queries about a store.
#[derive(Debug, PartialEq)]
struct Contents {
    runs: Vec<RunSummary>,
    recoveries: RecoveryStatisticsReport,
    escalations: Vec<EscalationRow>,
    messages: Option<Vec<OutboxMessage>>,
    calls: Option<CallContents>,
}

/// The results that depend on the calls.
#[derive(Debug, PartialEq)]
struct CallContents {
    calls: Vec<StoredCall>,
    spending: Vec<CostSummary>,
    projects: Vec<ProjectSummary>,
    analytics: FailureAnalytics,
    failures: FailurePage,
}

impl Contents {
    /// Reads a store without that which a store of this version could not hold.
    fn read(store: &Store, version: usize) -> Self {
        let query = FailureQuery::default();
        let calls = || CallContents {
            calls: wait(store.calls(&CallFilter::default())).unwrap(),
            spending: wait(store.spending(&SpendingQuery::default())).unwrap(),
            projects: wait(store.projects()).unwrap(),
            analytics: wait(store.failure_analytics(&query)).unwrap(),
            failures: wait(store.failure_page(&query, None, 9)).unwrap(),
        };
        let messages = || wait(store.outbox_messages(&OutboxFilter::default())).unwrap();
        let mut runs = wait(store.runs(&RunFilter::default())).unwrap();
        if version < 5 {
            for run in &mut runs {
                (run.cost_usd, run.tokens, run.unpriced_count) = (0.0, 0, 0);
                run.model = None;
            }
        }
        Self {
            runs,
            recoveries: wait(store.recovery_report(&RecoveryStatisticsQuery::default())).unwrap(),
            escalations: wait(store.escalations(&EscalationFilter {
                status: EscalationStatusFilter::Any,
                ..EscalationFilter::default()
            }))
            .unwrap(),
            messages: (version >= 3).then(messages),
            calls: (version >= 5).then(calls),
        }
    }
}

#[test]
fn store_of_every_older_schema_is_migrated() {
    let present = present_store();
    for version in 1..=MIGRATIONS.len() {
        let place = downgraded_store(&present, version);
        let store = wait(place.open());
        let expected = Contents::read(&wait(present.open()), version);
        assert_eq!(Contents::read(&store, version), expected, "{version}");
        let checked = wait(store.maintain(MaintenanceTask::Check)).unwrap();
        let MaintenanceReport::Checked { findings, .. } = checked else {
            panic!("{checked:?}");
        };
        assert_eq!(findings, [], "{version}");
    }
    let all = Contents::read(&wait(present.open()), MIGRATIONS.len());
    let calls = all.calls.unwrap();
    assert_eq!(calls.analytics.total_failures, 3);
    // Usage reported by an attempt, and calls without an attempt.
    assert_eq!(calls.projects[0].cost_usd, 0.75);
    assert_eq!(all.recoveries.total.recoveries, 1);
    assert_eq!(all.escalations.len(), 2);
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
        group_by: vec![StatisticsDimension::Kind],
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
