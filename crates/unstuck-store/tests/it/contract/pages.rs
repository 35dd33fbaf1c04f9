//! Paged lists that are read while others write.

use unstuck_core::FailureKind;
use unstuck_core::event::{ApiCallRecord, RunId, RunOutcome};
use unstuck_core::views::RunStatus;
use unstuck_store::{
    EventFilter, EventOrder, MaintenanceReport, MaintenanceTask, RunEventBatch, RunFilter, Store,
};

use super::Place;
use crate::samples::{
    append, attempt_started, called, end, failed, finished, later, run, started, started_in,
    succeeded,
};

async fn begin(store: &Store, run: &RunId, second: i64) {
    let append = RunEventBatch::new(run.clone(), later(second), [started(run)]);
    store.append(append).await.unwrap();
}

pub(super) async fn run_pages_are_stable(place: &Place) {
    let store = place.open().await;
    for number in 0..9 {
        // Some of them started at the same time.
        begin(&store, &run(number), i64::from(number / 3)).await;
    }
    let all = store.runs(&RunFilter::default()).await.unwrap();
    for size in 1..10 {
        let mut filter = RunFilter {
            limit: Some(size),
            until: Some(later(100)),
            ..RunFilter::default()
        };
        let mut seen = Vec::new();
        loop {
            let page = store.run_page(&filter).await.unwrap();
            seen.extend(page.runs);
            let Some(next) = page.next else {
                break;
            };
            let newer = run(100 * size as u32 + seen.len() as u32);
            begin(&store, &newer, 200).await;
            filter.after = Some(next.to_string().parse().unwrap());
        }
        assert_eq!(seen, all, "pages of {size}");
    }
    let status = vec![RunStatus::Running, RunStatus::Failed];
    let filter = RunFilter {
        status,
        ..RunFilter::default()
    };
    assert!(store.run_page(&filter).await.unwrap().runs.len() > 9);
}

pub(super) async fn event_pages_are_stable(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    begin(&store, &run, 0).await;
    for number in 1..=9 {
        let next = append(&run, [attempt_started(&run, number)]);
        store.append(next).await.unwrap();
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let filter = EventFilter {
            order: EventOrder::NewestFirst,
            before,
            limit: Some(4),
            ..EventFilter::default()
        };
        let page = store.log_entries(&filter).await.unwrap();
        seen.extend(page.iter().map(|event| event.offset.number()));
        let Some(last) = page.last() else {
            break;
        };
        before = Some(last.offset);
        begin(&store, &crate::samples::run(100 + seen.len() as u32), 1).await;
    }
    assert_eq!(seen, (1..=10).rev().collect::<Vec<_>>());
}

pub(super) async fn projects_are_summarized(place: &Place) {
    let store = place.open().await;
    for (number, project, outcome) in [
        (1, "/home/me/shop", Some(RunOutcome::Succeeded)),
        (2, "/home/me/shop", Some(RunOutcome::Failed)),
        (3, "/home/me/shop", None),
        (4, "/home/me/blog", None),
        (5, "", None),
    ] {
        let run = run(number);
        let costly = end(&run, 10, Some(0.5), None);
        let fails = failed(end(&run, 10, Some(0.25), None), FailureKind::Timeout);
        let mut events = vec![started_in(&run, project)];
        if !project.is_empty() {
            events.extend([attempt_started(&run, 1), fails, succeeded(costly)]);
        }
        events.extend(outcome.map(finished));
        let at = later(i64::from(number));
        store
            .append(RunEventBatch::new(run, at, events))
            .await
            .unwrap();
    }
    let of_driven = called(&run(4), "a", 60);
    let of_client = ApiCallRecord {
        cost_usd: Some(9.0),
        ..called(&run(5), "b", 70)
    };
    store
        .record_calls(vec![of_driven, of_client])
        .await
        .unwrap();
    let projects = store.projects().await.unwrap();
    let told: Vec<_> = projects
        .iter()
        .map(|one| (&*one.name, one.last_activity, one.cost_usd))
        .collect();
    let expected = [("blog", later(4), 1.0), ("shop", later(3), 2.25)];
    assert_eq!(
        told, expected,
        "what attempts told, and a call that belongs to none of them"
    );
    let standing: Vec<_> = projects[1].runs.clone().into_iter().collect();
    assert_eq!(
        standing,
        [
            (RunStatus::Running, 1),
            (RunStatus::Succeeded, 1),
            (RunStatus::Failed, 1)
        ]
    );
    assert_eq!(projects[1].root, "/home/me/shop");
    let json = serde_json::to_value(&projects[0]).unwrap();
    assert_eq!(json["runs"], serde_json::json!({"running": 1}));

    store
        .maintain(MaintenanceTask::Prune(later(1000)))
        .await
        .unwrap();
    let pruned = &store.projects().await.unwrap()[1];
    assert_eq!((pruned.runs.len(), pruned.cost_usd), (1, 2.25));
    let checked = store.maintain(MaintenanceTask::Check).await.unwrap();
    assert!(matches!(checked, MaintenanceReport::Checked { findings, .. } if findings.is_empty()));
}
