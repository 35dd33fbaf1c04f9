//! Following the log.

use std::pin::pin;

use futures_util::future::join_all;
use futures_util::{Stream, StreamExt};
use unstuck_store::{EventLogEntry, EventLogOffset, Store, StoreError};

use super::Place;
use crate::samples::{append, attempt_started, run, started};

/// Writes the start of a run and this many attempts, one after the other.
async fn write(store: &Store, number: u32, attempts: u32) {
    let run = run(number);
    let begin = append(&run, [started(&run)]);
    store.append(begin).await.unwrap();
    for number in 1..=attempts {
        let next = append(&run, [attempt_started(&run, number)]);
        store.append(next).await.unwrap();
    }
}

/// Returns the offsets of this many next events.
async fn next(
    stream: &mut (impl Stream<Item = Result<Vec<EventLogEntry>, StoreError>> + Unpin),
    count: usize,
) -> Vec<u64> {
    let mut places = Vec::new();
    while places.len() < count {
        let events = stream.next().await.unwrap().unwrap();
        places.extend(events.iter().map(|event| event.offset.number()));
    }
    places
}

pub(super) async fn new_events_are_delivered_at_once_and_in_order(place: &Place) {
    let (store, other) = (place.open().await, place.open().await);
    write(&store, 1, 2).await;
    let mut news = pin!(store.follow(None).await.unwrap());
    write(&store, 2, 1).await;
    let told = news.next().await.unwrap().unwrap();
    assert_eq!(told[0].offset.number(), 4);
    assert_eq!((&told[0].record.run, told[0].record.seq), (&run(2), 1));
    assert_eq!(next(&mut news, 2 - told.len()).await, [5][..2 - told.len()]);
    write(&other, 3, 1).await;
    assert_eq!(next(&mut news, 2).await, [6, 7]);
}

pub(super) async fn following_continues_from_an_offset(place: &Place) {
    let store = place.open().await;
    let (run, first) = (run(1), started(&run(1)));
    let attempts = (1..=700).map(|number| attempt_started(&run, number));
    let many = append(&run, [first].into_iter().chain(attempts));
    store.append(many).await.unwrap();
    let mut all = pin!(store.follow(Some(EventLogOffset::default())).await.unwrap());
    assert_eq!(next(&mut all, 701).await, (1..=701).collect::<Vec<_>>());
    let mut rest = pin!(store.follow(Some(EventLogOffset::new(699))).await.unwrap());
    assert_eq!(next(&mut rest, 2).await, [700, 701]);
    write(&store, 2, 1).await;
    assert_eq!(next(&mut rest, 2).await, [702, 703]);
    assert_eq!(next(&mut all, 2).await, [702, 703]);
}

/// Writes more entries than are buffered for slow followers.
pub(super) async fn slow_follower_misses_nothing(place: &Place) {
    let (store, other) = (place.open().await, place.open().await);
    let mut slow = pin!(store.follow(None).await.unwrap());
    let mut quick = pin!(store.follow(None).await.unwrap());
    for number in 0..100 {
        let by = if number % 2 == 0 { &store } else { &other };
        write(by, number, 2).await;
        next(&mut quick, 3).await;
    }
    assert_eq!(next(&mut slow, 300).await, (1..=300).collect::<Vec<_>>());
    write(&store, 100, 0).await;
    assert_eq!(next(&mut slow, 1).await, [301]);
}

pub(super) async fn many_followers_are_supported(place: &Place) {
    let store = place.open().await;
    write(&store, 0, 300).await;
    let begin = (0..100).map(|number| {
        let store = &store;
        async move {
            let after = Some(EventLogOffset::new(number * 3)).filter(|_| number % 5 > 0);
            let first = after.map_or(301, EventLogOffset::number) + 1;
            (first, Box::pin(store.follow(after).await.unwrap()))
        }
    });
    let following = join_all(begin).await.into_iter();
    let listening = following.map(async |(first, mut news)| {
        let places = next(&mut news, (603 - first) as usize).await;
        assert_eq!(places, (first..603).collect::<Vec<_>>());
    });
    tokio::join!(join_all(listening), write(&store, 1, 300));
}

pub(super) async fn following_ends_when_the_store_is_closed(place: &Place) {
    let store = place.open().await;
    let mut news = pin!(store.follow(None).await.unwrap());
    store.clone().close().await.unwrap();
    assert!(news.next().await.is_none());
    assert!(store.follow(None).await.is_err());
}
