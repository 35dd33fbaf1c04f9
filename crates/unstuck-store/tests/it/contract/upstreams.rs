//! Upstream state shared between processes.

use std::time::Duration;

use super::Place;
use crate::samples::later;

const URL: &str = "https://api.example/v1";
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) async fn one_process_probes_an_upstream_per_minute(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    let first = here.claim_probe(URL, later(0), MINUTE).await.unwrap();
    assert!(first.is_granted && first.recovered.is_none());
    for (store, at) in [(&there, 0), (&here, 30), (&there, 59)] {
        let slot = store.claim_probe(URL, later(at), MINUTE).await.unwrap();
        assert_eq!((slot.is_granted, slot.next), (false, later(60)));
    }
    assert!(
        there
            .claim_probe(URL, later(60), MINUTE)
            .await
            .unwrap()
            .is_granted
    );
    let other = here.claim_probe("https://other", later(60), MINUTE).await;
    assert!(other.unwrap().is_granted);
}

pub(crate) async fn upstream_recovery_is_visible_to_all_processes(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    assert_eq!(there.upstream_recovered_at(URL).await.unwrap(), None);
    here.claim_probe(URL, later(0), MINUTE).await.unwrap();
    here.record_upstream_recovery(URL, later(5)).await.unwrap();
    assert_eq!(
        there.upstream_recovered_at(URL).await.unwrap(),
        Some(later(5))
    );
    // The next process need not wait for the slot.
    let slot = there.claim_probe(URL, later(6), MINUTE).await.unwrap();
    assert_eq!((slot.is_granted, slot.recovered), (true, Some(later(5))));
}

pub(crate) async fn released_calls_of_all_processes_are_counted_together(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    here.claim_probe(URL, later(0), MINUTE).await.unwrap();
    here.record_upstream_recovery(URL, later(5)).await.unwrap();
    let mut positions = Vec::new();
    for (store, at) in [(&here, 5), (&there, 5), (&here, 6), (&there, 7)] {
        let position = store.count_released_call(URL, later(at)).await.unwrap();
        positions.push(position);
        // Those that were released see the recovery, too, which does not start the waves again.
        store
            .record_upstream_recovery(URL, later(at))
            .await
            .unwrap();
    }
    assert_eq!(positions, [1, 2, 3, 4]);
    let other = there.count_released_call("https://other", later(7)).await;
    assert_eq!(other.unwrap(), 1);
    // A process that asks for a probe right after the recovery learns of it.
    there.claim_probe(URL, later(8), MINUTE).await.unwrap();
    assert_eq!(here.count_released_call(URL, later(8)).await.unwrap(), 5);
    // It has failed again: a probe is needed.
    here.record_upstream_recovery(URL, later(9)).await.unwrap();
    let slot = there.claim_probe(URL, later(30), MINUTE).await.unwrap();
    assert!(slot.is_granted);
    assert_eq!(here.count_released_call(URL, later(31)).await.unwrap(), 1);
    assert_eq!(there.count_released_call(URL, later(32)).await.unwrap(), 2);
    // Long after the last release, or with a wrong clock, the waves start again.
    for at in [100, -100_000] {
        let position = here.count_released_call(URL, later(at)).await.unwrap();
        assert_eq!(position, 1, "{at}");
    }
}

pub(crate) async fn wrong_clock_does_not_block_probes_for_long(place: &Place) {
    let store = place.open().await;
    store
        .claim_probe(URL, later(1_000_000), MINUTE)
        .await
        .unwrap();
    assert!(
        store
            .claim_probe(URL, later(0), MINUTE)
            .await
            .unwrap()
            .is_granted
    );
}
