//! Writing events.

use serde_json::{Value, json};
use unstuck_core::FailureKind;
use unstuck_core::event::{Event, RunOutcome, UnknownEvent};
use unstuck_store::{
    EventFilter, EventPayloadRedactor, RunEventBatch, RunFilter, Store, StoreError, StoreOptions,
};

use super::Place;
use crate::samples::{
    START, append, attempt_started, end, failed, finished, run, started, started_in, succeeded,
};

pub(crate) async fn events_are_numbered_and_round_trip(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let first = append(&run, [started(&run), attempt_started(&run, 1)]);
    let mut recorded = store.append(first).await.unwrap();
    let costly = end(&run, 1234, Some(0.1 + 0.2), None);
    let second = append(
        &run,
        [
            failed(costly, FailureKind::RateLimit),
            finished(RunOutcome::Failed),
        ],
    );
    recorded.extend(store.append(second).await.unwrap());
    let numbers: Vec<_> = recorded.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(store.load(&run).await.unwrap(), recorded);
    store.close().await.unwrap();

    let again = place.open().await;
    assert_eq!(again.load(&run).await.unwrap(), recorded);
    assert_eq!(again.load(&crate::samples::run(2)).await.unwrap(), []);
}

pub(crate) async fn run_start_is_first_and_unique(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let early = store.append(append(&run, [attempt_started(&run, 1)])).await;
    assert!(
        matches!(early, Err(StoreError::UnknownRun { .. })),
        "{early:?}"
    );
    store.append(append(&run, [started(&run)])).await.unwrap();
    let twice = store.append(append(&run, [started(&run)])).await;
    assert!(
        matches!(twice, Err(StoreError::RunExists { .. })),
        "{twice:?}"
    );
    assert_eq!(store.load(&run).await.unwrap().len(), 1);
    let nothing = store.append(append(&run, [])).await.unwrap();
    assert_eq!(nothing, []);
}

pub(crate) async fn invalid_append_fails_alone(place: &Place) {
    let store = place.open().await;
    let good = |number| {
        let run = run(number);
        append(&run, [started(&run)])
    };
    let unknown = run(99);
    let (one, bad, two) = tokio::join!(
        store.append(good(1)),
        store.append(append(&unknown, [attempt_started(&unknown, 1)])),
        store.append(good(2)),
    );
    assert!(one.is_ok() && two.is_ok());
    assert!(matches!(bad, Err(StoreError::UnknownRun { run }) if run == unknown));
    let all = store.events(&EventFilter::default()).await.unwrap();
    assert_eq!(all.events.len(), 2);
}

pub(crate) async fn unknown_events_are_kept_verbatim(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let fields = json!({"event": "moon_landed", "crew": 3, "big": 18_446_744_073_709_551_615_u64});
    let Value::Object(fields) = fields else {
        unreachable!()
    };
    let landed = Event::Unknown(UnknownEvent {
        name: "moon_landed".into(),
        fields,
    });
    let events = append(&run, [started(&run), landed.clone()]);
    store.append(events).await.unwrap();
    assert_eq!(store.load(&run).await.unwrap()[1].event, landed);
}

pub(crate) async fn events_are_redacted_before_writing(place: &Place) {
    let redact = EventPayloadRedactor::new(|value| {
        for name in ["project", "cwd"] {
            if let Some(folder) = value.get_mut(name) {
                *folder = json!("/home/…");
            }
        }
    });
    let options = StoreOptions {
        redact: Some(redact),
        ..StoreOptions::default()
    };
    let store = Store::open(&place.location(), options).await.unwrap();
    let run = run(1);
    let secret = started_in(&run, "/home/hunter2");
    let recorded = store
        .append(append(&run, [secret, succeeded(end(&run, 1, None, None))]))
        .await
        .unwrap();
    assert_eq!(store.load(&run).await.unwrap(), recorded);
    let views = store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(views[0].project, "/home/…");
    store.close().await.unwrap();
    let bytes = place.bytes();
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(holds(b"run_started") && !holds(b"hunter2"));
}

pub(crate) async fn closed_store_returns_an_error(place: &Place) {
    let store = place.open().await;
    let other = store.clone();
    store.close().await.unwrap();
    let run = run(1);
    let late = RunEventBatch::new(run.clone(), START, [started(&run)]);
    let said = other.append(late).await.unwrap_err().to_string();
    assert_eq!(said, "store error: already closed");
    assert!(other.load(&run).await.is_err());
}
