//! Run and event queries.

use unstuck_core::FailureKind;
use unstuck_core::event::{EventRecord, RunId, RunOutcome};
use unstuck_core::views::{RunStatus, RunSummary};
use unstuck_store::{
    EventFilter, EventLogOffset, EventOrder, EventPage, RunEventBatch, RunFilter, Store,
};

use super::Place;
use crate::samples::{
    append, attempt_started, end, failed, finished, later, resumed, run, started, started_in,
    succeeded,
};

/// Writes three runs: a recovered one in a shop, a failed one in a farm, and an unfinished one in the shop.
async fn filled(place: &Place) -> Store {
    let store = place.open().await;
    let (one, two, three) = (run(1), run(2), run(30));
    let at = |run: &_, seconds, events| RunEventBatch {
        at: later(seconds),
        ..append(run, events)
    };
    let limited = failed(end(&one, 100, Some(0.25), None), FailureKind::RateLimit);
    let worked = succeeded(end(&one, 100, Some(0.5), None));
    let recovered = finished(RunOutcome::Recovered);
    let steps = [
        at(
            &one,
            0,
            vec![started(&one), attempt_started(&one, 1), limited],
        ),
        at(
            &two,
            1,
            vec![started_in(&two, "/farm"), attempt_started(&two, 1)],
        ),
        at(&one, 2, vec![attempt_started(&one, 2), worked, recovered]),
        at(
            &two,
            3,
            vec![failed(end(&two, 9, None, None), FailureKind::CompileError)],
        ),
        at(&two, 4, vec![finished(RunOutcome::Failed)]),
        at(&three, 5, vec![started(&three)]),
    ];
    for step in steps {
        store.append(step).await.unwrap();
    }
    store
}

fn ids(runs: &[RunSummary]) -> Vec<&str> {
    runs.iter().map(|run| run.id.as_str()).collect()
}

fn names(page: &EventPage) -> Vec<(&str, u64)> {
    let name = |event: &EventRecord| event.run.as_str().ends_with('1');
    let ones = page.events.iter().filter(|event| name(event));
    ones.map(|event| (event.event.name(), event.seq)).collect()
}

pub(crate) async fn run_summary_is_the_projection_of_its_events(place: &Place) {
    let store = filled(place).await;
    for view in store.runs(&RunFilter::default()).await.unwrap() {
        let events = store.load(&view.id).await.unwrap();
        assert_eq!(RunSummary::from_events(&events), Some(view));
    }
}

/// Run 30 has not ended; it is running or crashed depending on whether a process supervises it.
pub(crate) async fn run_without_supervisor_is_crashed(place: &Place) {
    let store = filled(place).await;
    let unfinished = "r000000030";
    let listed = async |status: &[RunStatus], alive: Option<Vec<RunId>>| {
        let filter = RunFilter {
            status: status.to_vec(),
            alive,
            ..RunFilter::default()
        };
        let runs = store.runs(&filter).await.unwrap();
        let ids = runs.iter().map(|run| run.id.to_string());
        ids.collect::<Vec<_>>()
    };
    let alive = || Some(vec![RunId::new(unfinished)]);
    let (running, crashed) = ([RunStatus::Running], [RunStatus::Crashed]);
    assert_eq!(listed(&running, alive()).await, [unfinished]);
    assert!(listed(&crashed, alive()).await.is_empty());
    assert!(listed(&running, Some(Vec::new())).await.is_empty());
    assert_eq!(listed(&crashed, Some(Vec::new())).await, [unfinished]);
    let both = [RunStatus::Crashed, RunStatus::Failed];
    let with_failed = [unfinished, "r000000002"];
    assert_eq!(listed(&both, Some(Vec::new())).await, with_failed);
    assert_eq!(listed(&running, None).await, [unfinished]);
    assert_eq!(listed(&[], Some(Vec::new())).await.len(), 3);
}

pub(crate) async fn runs_are_listed_newest_first_and_filtered(place: &Place) {
    let store = filled(place).await;
    let all = RunFilter::default();
    let (one, two, three) = ("r000000001", "r000000002", "r000000030");
    for (filter, expected) in [
        (all.clone(), vec![three, two, one]),
        (
            RunFilter {
                limit: Some(2),
                ..all.clone()
            },
            vec![three, two],
        ),
        (
            RunFilter {
                project: Some("/farm".into()),
                ..all.clone()
            },
            vec![two],
        ),
        (
            RunFilter {
                kind: Some(FailureKind::RateLimit),
                ..all.clone()
            },
            vec![one],
        ),
        (
            RunFilter {
                status: vec![RunStatus::Running, RunStatus::Failed],
                ..all.clone()
            },
            vec![three, two],
        ),
        (
            RunFilter {
                since: Some(later(1)),
                until: Some(later(5)),
                ..all.clone()
            },
            vec![two],
        ),
        (
            RunFilter {
                prefix: Some("r00000000".into()),
                ..all.clone()
            },
            vec![two, one],
        ),
        (
            RunFilter {
                prefix: Some(three.into()),
                ..all.clone()
            },
            vec![three],
        ),
        (
            RunFilter {
                prefix: Some("r%".into()),
                ..all.clone()
            },
            vec![],
        ),
        (
            RunFilter {
                prefix: Some("_".into()),
                ..all
            },
            vec![],
        ),
    ] {
        let found = store.runs(&filter).await.unwrap();
        assert_eq!(ids(&found), expected, "{filter:?}");
    }
}

pub(crate) async fn resumed_run_is_listed_as_running(place: &Place) {
    let store = filled(place).await;
    let running = RunFilter {
        status: vec![RunStatus::Running],
        project: Some("/farm".into()),
        ..RunFilter::default()
    };
    assert_eq!(store.runs(&running).await.unwrap(), []);
    store.append(append(&run(2), [resumed()])).await.unwrap();
    assert_eq!(store.runs(&running).await.unwrap().len(), 1);
}

pub(crate) async fn events_are_filtered(place: &Place) {
    let store = filled(place).await;
    let all = EventFilter::default();
    for (filter, expected) in [
        (
            EventFilter {
                kind: Some(FailureKind::CompileError),
                ..all.clone()
            },
            1,
        ),
        (
            EventFilter {
                names: vec!["attempt_started".into(), "run_started".into()],
                ..all.clone()
            },
            6,
        ),
        (
            EventFilter {
                project: Some("/farm".into()),
                ..all.clone()
            },
            4,
        ),
        (
            EventFilter {
                session: Some(run(1).session_id(1)),
                ..all.clone()
            },
            5,
        ),
        (
            EventFilter {
                since: Some(later(2)),
                until: Some(later(4)),
                ..all.clone()
            },
            4,
        ),
        (
            EventFilter {
                run: Some(run(1)),
                ..all.clone()
            },
            6,
        ),
        (
            EventFilter {
                limit: Some(3),
                ..all.clone()
            },
            3,
        ),
        (all, 11),
    ] {
        let found = store.events(&filter).await.unwrap();
        assert_eq!(found.events.len(), expected, "{filter:?}");
    }
}

pub(crate) async fn log_can_be_followed_from_an_offset(place: &Place) {
    let store = filled(place).await;
    let mut filter = EventFilter {
        limit: Some(4),
        ..EventFilter::default()
    };
    let mut seen = Vec::new();
    loop {
        let page = store.events(&filter).await.unwrap();
        filter.after = Some(EventLogOffset::new(page.last.number()));
        if page.events.is_empty() {
            break;
        }
        seen.extend(page.events);
    }
    let whole = store.events(&EventFilter::default()).await.unwrap();
    assert_eq!(seen, whole.events);

    store
        .append(append(&run(30), [attempt_started(&run(30), 1)]))
        .await
        .unwrap();
    let news = store.events(&filter).await.unwrap();
    assert_eq!(
        (news.events.len(), news.events[0].event.name()),
        (1, "attempt_started")
    );
}

pub(crate) async fn newest_events_come_first_on_request(place: &Place) {
    let store = filled(place).await;
    let newest = EventFilter {
        order: EventOrder::NewestFirst,
        run: Some(run(1)),
        limit: Some(2),
        ..EventFilter::default()
    };
    let page = store.events(&newest).await.unwrap();
    assert_eq!(
        names(&page),
        [("run_finished", 6), ("attempt_succeeded", 5)]
    );
}

pub(crate) async fn export_is_the_whole_log_line_by_line(place: &Place) {
    let store = filled(place).await;
    let more: Vec<_> = (0..2500)
        .map(|number| attempt_started(&run(30), number))
        .collect();
    store.append(append(&run(30), more)).await.unwrap();
    let mut lines = Vec::new();
    let count = store
        .export_events(&EventFilter::default(), &mut lines)
        .await
        .unwrap();
    let read: Vec<EventRecord> = std::str::from_utf8(&lines)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let whole = store.events(&EventFilter::default()).await.unwrap();
    assert_eq!((count, read), (2511, whole.events));

    let few = EventFilter {
        limit: Some(1003),
        ..EventFilter::default()
    };
    assert_eq!(
        store.export_events(&few, &mut Vec::new()).await.unwrap(),
        1003
    );
}
