//! Who drives a run.

use std::time::Duration;

use unstuck_core::Timestamp;
use unstuck_core::event::RunId;
use unstuck_store::{ClaimOutcome, ClaimRequest, LeaseToken, Store, StoreError};

use super::Place;
use crate::samples::{append, attempt_started, later, owner, run, started};

fn request(run: &RunId, pid: u32, now: Timestamp) -> ClaimRequest {
    ClaimRequest {
        run: run.clone(),
        owner: owner(pid),
        now,
        replaces: None,
    }
}

async fn granted(store: &Store, request: ClaimRequest) -> LeaseToken {
    match store.claim(request).await.unwrap() {
        ClaimOutcome::Granted(token) => token,
        ClaimOutcome::HeldBy(lease) => panic!("held by {lease:?}"),
    }
}

pub(crate) async fn a_run_is_driven_by_one_until_they_let_go(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    let run = run(1);
    let token = granted(&here, request(&run, 1, later(0))).await;
    let ClaimOutcome::HeldBy(lease) = there.claim(request(&run, 2, later(14))).await.unwrap()
    else {
        panic!("two drive the same run");
    };
    assert_eq!((lease.owner.pid, &lease.token), (1, &token));
    assert_eq!(lease.expires_at(), later(15));
    here.release(&token).await.unwrap();
    let next = granted(&there, request(&run, 2, later(14))).await;
    assert!(next.number > token.number);
}

pub(crate) async fn a_lease_that_is_not_renewed_expires(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    let run = run(1);
    let token = granted(&here, request(&run, 1, later(0))).await;
    here.renew(&token, later(10)).await.unwrap();
    let early = there.claim(request(&run, 2, later(24))).await.unwrap();
    assert!(matches!(early, ClaimOutcome::HeldBy(_)));
    let next = granted(&there, request(&run, 2, later(25))).await;
    let lost = here.renew(&token, later(26)).await;
    assert!(
        matches!(lost, Err(StoreError::LostLease { .. })),
        "{lost:?}"
    );
    // Letting go of what was lost takes nothing away from the one who has it now.
    here.release(&token).await.unwrap();
    there.renew(&next, later(27)).await.unwrap();
}

pub(crate) async fn a_dead_owners_lease_is_taken_over_at_once_and_only_once(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let dead = granted(&store, request(&run, 1, later(0))).await;
    let instead = |pid| ClaimRequest {
        replaces: Some(dead.clone()),
        ..request(&run, pid, later(1))
    };
    let taken = granted(&store, instead(2)).await;
    let late = store.claim(instead(3)).await.unwrap();
    assert!(matches!(late, ClaimOutcome::HeldBy(lease) if lease.token == taken));
}

pub(crate) async fn who_lost_a_run_can_write_nothing_more_to_it(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    let run = run(1);
    let token = granted(&here, request(&run, 1, later(0))).await;
    let begin = append(&run, [started(&run)]).with_lease(token.clone());
    here.append(begin).await.unwrap();
    granted(&there, request(&run, 2, later(60))).await;

    let more = append(&run, [attempt_started(&run, 1)]);
    let refused = here.append(more.clone().with_lease(token)).await;
    assert!(
        matches!(refused, Err(StoreError::LostLease { .. })),
        "{refused:?}"
    );
    // The words of people need no lease.
    assert_eq!(here.append(more).await.unwrap()[0].seq, 2);
}

pub(crate) async fn a_lease_is_good_for_its_own_run_only(place: &Place) {
    let store = place.open().await;
    let token = granted(&store, request(&run(1), 1, later(0))).await;
    let other = run(2);
    let refused = store
        .append(append(&other, [started(&other)]).with_lease(token))
        .await;
    assert!(
        matches!(refused, Err(StoreError::LostLease { .. })),
        "{refused:?}"
    );
}

/// Many connections want the same run at the same moment, again and again.
pub(crate) async fn of_many_who_claim_at_once_one_gets_it(place: &Place) {
    let mut stores = Vec::new();
    for _ in 0..8 {
        stores.push(place.open().await);
    }
    for round in 0..10 {
        let run = run(round);
        let claims: Vec<_> = stores
            .iter()
            .zip(1..)
            .map(|(store, pid)| {
                let (store, request) = (store.clone(), request(&run, pid, later(0)));
                tokio::spawn(async move { store.claim(request).await })
            })
            .collect();
        let mut winners = 0;
        for claim in claims {
            let claim = tokio::time::timeout(Duration::from_secs(60), claim).await;
            winners += usize::from(matches!(
                claim.unwrap().unwrap().unwrap(),
                ClaimOutcome::Granted(_)
            ));
        }
        assert_eq!(winners, 1);
    }
}
