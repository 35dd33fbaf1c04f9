//! What processes share about an upstream that is down.

use std::time::Duration;

use super::Place;
use crate::samples::later;

const URL: &str = "https://api.example/v1";
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) async fn one_of_all_processes_probes_an_upstream_in_a_minute(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    let first = here.take_probe(URL, later(0), MINUTE).await.unwrap();
    assert!(first.granted && first.recovered.is_none());
    for (store, at) in [(&there, 0), (&here, 30), (&there, 59)] {
        let slot = store.take_probe(URL, later(at), MINUTE).await.unwrap();
        assert_eq!((slot.granted, slot.next), (false, later(60)));
    }
    assert!(
        there
            .take_probe(URL, later(60), MINUTE)
            .await
            .unwrap()
            .granted
    );
    let other = here.take_probe("https://other", later(60), MINUTE).await;
    assert!(other.unwrap().granted);
}

pub(crate) async fn a_recovery_is_seen_by_all_processes(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    assert_eq!(there.recovered_at(URL).await.unwrap(), None);
    here.take_probe(URL, later(0), MINUTE).await.unwrap();
    here.note_recovery(URL, later(5)).await.unwrap();
    assert_eq!(there.recovered_at(URL).await.unwrap(), Some(later(5)));
    // Whoever comes next need not wait for the slot.
    let slot = there.take_probe(URL, later(6), MINUTE).await.unwrap();
    assert_eq!((slot.granted, slot.recovered), (true, Some(later(5))));
}

pub(crate) async fn a_clock_that_was_wrong_keeps_nobody_waiting_for_long(place: &Place) {
    let store = place.open().await;
    store
        .take_probe(URL, later(1_000_000), MINUTE)
        .await
        .unwrap();
    assert!(
        store
            .take_probe(URL, later(0), MINUTE)
            .await
            .unwrap()
            .granted
    );
}
