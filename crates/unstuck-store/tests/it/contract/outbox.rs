//! The outbox.

use std::time::Duration;

use serde_json::json;
use unstuck_core::event::RunId;
use unstuck_store::{
    DeliveryResult, DeliveryState, EventPayloadRedactor, MaintenanceTask, NewOutboxMessage,
    OUTBOX_CLAIM_TTL, OutboxFilter, OutboxMessage, RunEventBatch, Store, StoreLocation,
    StoreOptions,
};

use super::Place;
use crate::samples::{attempt_started, later, run, started};

const QUIET: Duration = Duration::from_secs(600);

fn message(group: &str, text: &str, window: Duration) -> NewOutboxMessage {
    NewOutboxMessage {
        event: 0,
        event_name: "escalation".into(),
        target: json!({ "url": "https://example.org/hook" }),
        body: json!({ "text": text }),
        group: group.into(),
        window,
    }
}

/// Writes an event of a started run, and a message about it.
async fn tell(store: &Store, run: &RunId, seconds: i64, message: NewOutboxMessage) {
    let append = RunEventBatch::new(run.clone(), later(seconds), [attempt_started(run, 1)]);
    store
        .append(append.with_messages(vec![message]))
        .await
        .unwrap();
}

async fn begun(store: &Store, number: u32) -> RunId {
    let run = run(number);
    let begin = RunEventBatch::new(run.clone(), later(0), [started(&run)]);
    store.append(begin).await.unwrap();
    run
}

async fn due(store: &Store, seconds: i64) -> Vec<OutboxMessage> {
    store.claim_due_messages(later(seconds), 10).await.unwrap()
}

fn texts(letters: &[OutboxMessage]) -> Vec<&str> {
    letters
        .iter()
        .map(|letter| letter.body["text"].as_str().unwrap())
        .collect()
}

/// Delivers all due messages, and returns them.
async fn arrived(store: &Store, seconds: i64) -> Vec<String> {
    let letters = due(store, seconds).await;
    let sent = store.record_delivery(ids(&letters), DeliveryResult::Delivered, later(seconds));
    sent.await.unwrap();
    texts(&letters).into_iter().map(str::to_owned).collect()
}

fn ids(letters: &[OutboxMessage]) -> Vec<String> {
    letters.iter().map(|letter| letter.id.clone()).collect()
}

async fn state(store: &Store) -> Vec<DeliveryState> {
    let all = store
        .outbox_messages(&OutboxFilter::default())
        .await
        .unwrap();
    all.iter().map(|letter| letter.state).collect()
}

pub(crate) async fn message_is_written_with_its_event_and_named_after_it(place: &Place) {
    let store = place.open().await;
    let run = begun(&store, 1).await;
    let mut second = message("a", "about the second", Duration::ZERO);
    second.event = 1;
    let both = [attempt_started(&run, 1), attempt_started(&run, 2)];
    let append = RunEventBatch::new(run.clone(), later(5), both);
    let outbox = vec![
        message("a", "one", Duration::ZERO),
        message("a", "two", Duration::ZERO),
        second,
    ];
    store.append(append.with_messages(outbox)).await.unwrap();
    // Another process finds them.
    let letters = due(&place.open().await, 5).await;
    assert_eq!(
        ids(&letters),
        [
            format!("{run}.2.1"),
            format!("{run}.2.2"),
            format!("{run}.3.1")
        ]
    );
    assert_eq!(texts(&letters), ["one", "two", "about the second"]);
    assert_eq!(letters[0].created, later(5));
}

pub(crate) async fn rejected_append_sends_nothing(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let append = RunEventBatch::new(run.clone(), later(0), [attempt_started(&run, 1)]);
    let refused = store.append(append.with_messages(vec![message("a", "x", QUIET)]));
    assert!(refused.await.is_err());
    assert_eq!(due(&store, 0).await, []);
}

pub(crate) async fn claimed_messages_are_exclusive(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    let run = begun(&here, 1).await;
    tell(&here, &run, 1, message("a", "x", QUIET)).await;
    let letters = due(&here, 1).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(due(&there, 2).await, []);
    // If the first process dies, the other gets the message after a while, under the same id.
    let held = i64::try_from(OUTBOX_CLAIM_TTL.as_secs()).unwrap();
    assert_eq!(ids(&due(&there, 1 + held).await), ids(&letters));
}

pub(crate) async fn failed_message_is_retried_until_given_up(place: &Place) {
    let store = place.open().await;
    let run = begun(&store, 1).await;
    tell(&store, &run, 1, message("a", "x", QUIET)).await;
    let letters = ids(&due(&store, 1).await);
    let failed = |next| DeliveryResult::Failed {
        error: "503".into(),
        next,
    };
    let again = failed(Some(later(10)));
    store
        .record_delivery(letters.clone(), again, later(2))
        .await
        .unwrap();
    assert_eq!(due(&store, 9).await, []);
    let second = due(&store, 10).await;
    assert_eq!(ids(&second), letters);
    assert_eq!(
        (second[0].attempts, second[0].last_error.as_deref()),
        (1, Some("503"))
    );
    store
        .record_delivery(letters, failed(None), later(11))
        .await
        .unwrap();
    assert_eq!(due(&store, 99_999).await, []);
    assert_eq!(state(&store).await, [DeliveryState::GivenUp]);
}

pub(crate) async fn first_message_is_sent_at_once_and_the_rest_as_a_group(place: &Place) {
    let store = place.open().await;
    let run = begun(&store, 1).await;
    tell(&store, &run, 0, message("a", "first", QUIET)).await;
    assert_eq!(arrived(&store, 0).await, ["first"]);
    tell(&store, &run, 100, message("a", "second", QUIET)).await;
    tell(&store, &run, 200, message("a", "third", QUIET)).await;
    tell(&store, &run, 200, message("b", "other", QUIET)).await;
    assert_eq!(arrived(&store, 200).await, ["other"]);
    assert_eq!(arrived(&store, 600).await, ["second", "third"]);
    // The digest starts its own quiet period.
    tell(&store, &run, 700, message("a", "fourth", QUIET)).await;
    assert_eq!(due(&store, 1199).await, []);
    // A claim of all pending messages gets it without waiting.
    let early = store.claim_waiting_messages(later(1199)).await.unwrap();
    assert_eq!(texts(&early), ["fourth"]);
    let again = DeliveryResult::Failed {
        error: String::new(),
        next: Some(later(1200)),
    };
    store
        .record_delivery(ids(&early), again, later(1199))
        .await
        .unwrap();
    assert_eq!(arrived(&store, 1200).await, ["fourth"]);
}

pub(crate) async fn delivered_messages_are_pruned_with_old_runs(place: &Place) {
    let store = place.open().await;
    let run = begun(&store, 1).await;
    tell(&store, &run, 1, message("a", "gone", Duration::ZERO)).await;
    tell(&store, &run, 1, message("b", "waits", Duration::ZERO)).await;
    let gone = vec![due(&store, 1).await[0].id.clone()];
    store
        .record_delivery(gone, DeliveryResult::Delivered, later(2))
        .await
        .unwrap();
    store
        .maintain(MaintenanceTask::Prune(later(3)))
        .await
        .unwrap();
    assert_eq!(state(&store).await, [DeliveryState::Waiting]);
}

pub(crate) async fn messages_are_redacted(place: &Place) {
    let hide = EventPayloadRedactor::new(|value| {
        if value.get("text").is_some() {
            value["text"] = json!("hidden");
        }
    });
    let options = StoreOptions {
        redact: Some(hide),
        ..StoreOptions::default()
    };
    let location: StoreLocation = place.location();
    let store = Store::open(&location, options).await.unwrap();
    let run = begun(&store, 1).await;
    tell(&store, &run, 1, message("a", "k7-secret", QUIET)).await;
    store.close().await.unwrap();
    let bytes = place.bytes();
    assert!(!bytes.windows(9).any(|part| part == b"k7-secret"));
}
