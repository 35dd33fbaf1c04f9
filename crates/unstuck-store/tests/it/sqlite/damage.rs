//! A damaged file is reported, not silently repaired.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use unstuck_core::event::RunOutcome;
use unstuck_store::{
    EventFilter, IntegrityFinding, MaintenanceReport, MaintenanceTask, Store, StoreError,
};

use super::bare;
use crate::contract::{Place, wait};
use crate::samples::{append, attempt_started, called, end, finished, run, started, succeeded};

/// Returns a closed store with many events.
fn filled() -> Place {
    let place = Place::new();
    wait(async {
        let store = place.open().await;
        for number in 0..40 {
            let run = run(number);
            let worked = succeeded(end(&run, 10, None, None));
            let events = [
                started(&run),
                attempt_started(&run, 1),
                worked,
                finished(RunOutcome::Succeeded),
            ];
            store.append(append(&run, events)).await.unwrap();
        }
        // All data is now in the main file.
        store.maintain(MaintenanceTask::Vacuum).await.unwrap();
        store.close().await.unwrap();
    });
    place
}

fn findings(store: &Store) -> Vec<IntegrityFinding> {
    match wait(store.maintain(MaintenanceTask::Check)).unwrap() {
        MaintenanceReport::Checked { findings, .. } => findings,
        other => panic!("{other:?}"),
    }
}

fn ids(findings: &[IntegrityFinding]) -> Vec<&str> {
    findings
        .iter()
        .map(|finding| finding.subject.as_str())
        .collect()
}

/// Returns the root pages of tables and indexes, from 1.
fn roots(place: &Place) -> Vec<u64> {
    let connection = bare(place);
    let mut statement = connection
        .prepare("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")
        .unwrap();
    let roots = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    roots.map(|root| root.unwrap().cast_unsigned()).collect()
}

#[test]
fn damaged_page_is_reported() {
    let place = filled();
    // The schema stays readable; the root pages of its tables are overwritten.
    let roots = roots(&place);
    let file = OpenOptions::new().write(true).open(place.file()).unwrap();
    for root in roots {
        file.write_all_at(&[0xA5; 512], (root - 1) * 4096).unwrap();
    }
    let before = fs::read(place.file()).unwrap();
    let store = wait(place.open());
    let read = wait(store.events(&EventFilter::default()));
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
    let run = run(1);
    let written = wait(store.append(append(&run, [attempt_started(&run, 2)])));
    assert!(
        matches!(written, Err(StoreError::Corrupt { .. })),
        "{written:?}"
    );
    assert_eq!(ids(&findings(&store))[0], "file");
    assert!(
        before == fs::read(place.file()).unwrap(),
        "the file was changed"
    );
}

#[test]
fn flipped_bit_in_the_first_page_is_reported() {
    let place = filled();
    let file = OpenOptions::new().write(true).open(place.file()).unwrap();
    // The offset of the schema's first cell pointer.
    file.write_all_at(&[0xFF, 0xFF, 0xFF, 0xFF], 103).unwrap();
    let opened = wait(Store::open(
        &place.location(),
        unstuck_store::StoreOptions::default(),
    ));
    assert!(
        matches!(opened, Err(StoreError::Corrupt { .. })),
        "{opened:?}"
    );
}

#[test]
fn projections_that_contradict_their_events_are_reported() {
    for (sql, expected) in [
        (
            "UPDATE runs SET view = json_set(view, '$.attempts', 7) WHERE id = 'r000000003'",
            vec!["r000000003"],
        ),
        (
            "UPDATE runs SET view = '{}' WHERE id = 'r000000003'",
            vec!["r000000003"],
        ),
        (
            "DELETE FROM runs WHERE id = 'r000000004'",
            vec!["r000000004"],
        ),
        (
            "DELETE FROM events WHERE run = 'r000000005' AND seq = 2",
            vec!["r000000005", "r000000005"],
        ),
        (
            "DELETE FROM events WHERE run = 'r000000006'",
            vec!["r000000006", "hourly", "tries"],
        ),
        (
            "UPDATE hourly SET count = count + 1 WHERE outcome = 'succeeded'",
            vec!["hourly", "daily"],
        ),
        (
            "DELETE FROM hourly WHERE outcome = 'succeeded'",
            vec!["hourly", "daily"],
        ),
        ("UPDATE tries SET count = count + 1", vec!["daily", "tries"]),
        ("UPDATE tries_daily SET newest = 0", vec!["daily"]),
        ("DELETE FROM daily", vec!["daily"]),
        ("DELETE FROM try_scopes", vec!["tries"]),
        ("UPDATE projects SET updated = 1", vec!["projects"]),
        ("DELETE FROM projects", vec!["projects"]),
    ] {
        let place = filled();
        assert_eq!(bare(&place).execute(sql, []).unwrap().min(1), 1);
        let found = findings(&wait(place.open()));
        assert_eq!(ids(&found), expected, "{sql}");
    }
}

#[test]
fn sums_that_contradict_the_calls_are_reported() {
    let place = filled();
    let store = wait(place.open());
    wait(store.record_calls(vec![called(&run(1), "a", 0)])).unwrap();
    assert_eq!(ids(&findings(&store)), [""; 0]);
    let sql = "UPDATE spent SET cost_nanos = cost_nanos + 1";
    bare(&place).execute(sql, []).unwrap();
    assert_eq!(ids(&findings(&store)), ["spent"]);
}
