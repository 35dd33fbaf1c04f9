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
