//! Store maintenance.

use unstuck_core::event::RunOutcome;
use unstuck_core::{FailureKind, Timestamp};
use unstuck_store::{
    EventFilter, LeaseClaim, MaintenanceReport, MaintenanceTask, RunEventBatch, RunFilter,
    StatisticsDimension, StatsQuery, Store, StoreError,
};

use super::Place;
use crate::samples::{
    append, attempt_started, end, failed, finished, later, owner, run, started, succeeded,
};

async fn ended(store: &Store, number: u32, seconds: i64, outcome: RunOutcome) {
    let run = run(number);
    let events = [
        started(&run),
        attempt_started(&run, 1),
        succeeded(end(&run, 10, None, None)),
        finished(outcome),
    ];
    let append = RunEventBatch::new(run, later(seconds), events);
    store.append(append).await.unwrap();
}

async fn count(store: &Store) -> u64 {
    let query = StatsQuery {
        group_by: vec![StatisticsDimension::Outcome],
        ..StatsQuery::default()
    };
    store.stats(&query).await.unwrap()[0].count
}

pub(crate) async fn only_old_finished_runs_are_pruned(place: &Place) {
    let store = place.open().await;
    ended(&store, 1, 0, RunOutcome::Succeeded).await;
    ended(&store, 2, 0, RunOutcome::AwaitingHuman).await;
    ended(&store, 3, 0, RunOutcome::Interrupted).await;
    ended(&store, 4, 100, RunOutcome::Failed).await;
    store
        .append(append(&run(5), [started(&run(5))]))
        .await
        .unwrap();
    let claim = LeaseClaim {
        run: run(1),
        owner: owner(1),
        now: later(0),
        replaces: None,
    };
    store.claim(claim).await.unwrap();

    let pruned = store
        .maintain(MaintenanceTask::Prune(later(50)))
        .await
        .unwrap();
    let expected = MaintenanceReport::Pruned {
        runs: 1,
        events: 4,
        kept: 3,
    };
    assert_eq!(pruned, expected);
    let left = store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(left.len(), 4);
    assert_eq!(store.load(&run(1)).await.unwrap(), []);
    assert_eq!(count(&store).await, 4, "the counts stay");
    let gone = store
        .append(append(&run(1), [attempt_started(&run(1), 2)]))
        .await;
    assert!(
        matches!(gone, Err(StoreError::UnknownRun { .. })),
        "{gone:?}"
    );
    assert_eq!(findings(&store).await, 0);
}

pub(crate) async fn log_offsets_are_never_reused(place: &Place) {
    let store = place.open().await;
    ended(&store, 1, 0, RunOutcome::Succeeded).await;
    let before = store.events(&EventFilter::default()).await.unwrap().last;
    store
        .maintain(MaintenanceTask::Prune(later(50)))
        .await
        .unwrap();
    ended(&store, 2, 60, RunOutcome::Succeeded).await;
    let news = EventFilter {
        after: Some(before),
        ..EventFilter::default()
    };
    assert_eq!(store.events(&news).await.unwrap().events.len(), 4);
}

pub(crate) async fn vacuumed_store_is_smaller_with_equal_content(place: &Place) {
    let store = place.open().await;
    for number in 0..300 {
        ended(&store, number, 0, RunOutcome::Succeeded).await;
    }
    let run = run(999);
    let limited = failed(end(&run, 10, None, None), FailureKind::RateLimit);
    store
        .append(append(&run, [started(&run), limited]))
        .await
        .unwrap();
    let before = store.load(&run).await.unwrap();
    let pruned = store
        .maintain(MaintenanceTask::Prune(later(50)))
        .await
        .unwrap();
    assert!(
        matches!(
            pruned,
            MaintenanceReport::Pruned {
                runs: 300,
                events: 1200,
                ..
            }
        ),
        "{pruned:?}"
    );
    let MaintenanceReport::Vacuumed {
        before: large,
        after: small,
    } = store.maintain(MaintenanceTask::Vacuum).await.unwrap()
    else {
        panic!("a vacuum reports sizes");
    };
    assert!(small < large / 2, "{small} of {large}");
    assert_eq!(store.load(&run).await.unwrap(), before);
    assert_eq!(findings(&store).await, 0);
}

pub(crate) async fn check_reports_the_contents(place: &Place) {
    let store = place.open().await;
    ended(&store, 1, 0, RunOutcome::Succeeded).await;
    store
        .append(append(&run(2), [started(&run(2))]))
        .await
        .unwrap();
    let expected = MaintenanceReport::Checked {
        findings: Vec::new(),
        runs: 2,
        events: 5,
    };
    assert_eq!(
        store.maintain(MaintenanceTask::Check).await.unwrap(),
        expected
    );
    let nothing_is_old = MaintenanceTask::Prune(Timestamp::from_seconds(0));
    let pruned = store.maintain(nothing_is_old).await.unwrap();
    assert!(matches!(
        pruned,
        MaintenanceReport::Pruned {
            runs: 0,
            kept: 0,
            ..
        }
    ));
}

async fn findings(store: &Store) -> usize {
    match store.maintain(MaintenanceTask::Check).await.unwrap() {
        MaintenanceReport::Checked { findings, .. } => findings.len(),
        other => panic!("{other:?}"),
    }
}
