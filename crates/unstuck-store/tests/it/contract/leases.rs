//! Run leases.

use std::time::Duration;

use unstuck_core::Timestamp;
use unstuck_core::event::RunId;
use unstuck_store::{LeaseClaim, LeaseClaimOutcome, LeaseToken, Store, StoreError};

use super::Place;
use crate::samples::{append, attempt_started, later, owner, run, started};

fn request(run: &RunId, pid: u32, now: Timestamp) -> LeaseClaim {
    LeaseClaim {
        run: run.clone(),
        owner: owner(pid),
        now,
        replaces: None,
    }
}

async fn granted(store: &Store, request: LeaseClaim) -> LeaseToken {
    match store.claim(request).await.unwrap() {
        LeaseClaimOutcome::Granted(token) => token,
        LeaseClaimOutcome::HeldBy(lease) => panic!("held by {lease:?}"),
    }
}

pub(crate) async fn run_has_one_owner_until_release(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    let run = run(1);
    let token = granted(&here, request(&run, 1, later(0))).await;
    let LeaseClaimOutcome::HeldBy(lease) = there.claim(request(&run, 2, later(14))).await.unwrap()
    else {
        panic!("two drive the same run");
    };
    assert_eq!((lease.owner.pid, &lease.token), (1, &token));
    assert_eq!(lease.expires_at(), later(15));
    here.release(&token).await.unwrap();
    let next = granted(&there, request(&run, 2, later(14))).await;
    assert!(next.number > token.number);
}

pub(crate) async fn lease_without_renewal_expires(place: &Place) {
    let (here, there) = (place.open().await, place.open().await);
    let run = run(1);
    let token = granted(&here, request(&run, 1, later(0))).await;
    here.renew(&token, later(10)).await.unwrap();
    let early = there.claim(request(&run, 2, later(24))).await.unwrap();
    assert!(matches!(early, LeaseClaimOutcome::HeldBy(_)));
    let next = granted(&there, request(&run, 2, later(25))).await;
    let lost = here.renew(&token, later(26)).await;
    assert!(
        matches!(lost, Err(StoreError::LostLease { .. })),
        "{lost:?}"
    );
    // Releasing a lost lease does not affect its new holder.
    here.release(&token).await.unwrap();
    there.renew(&next, later(27)).await.unwrap();
}

pub(crate) async fn lease_of_a_dead_owner_is_replaced_exactly_once(place: &Place) {
    let store = place.open().await;
    let run = run(1);
    let dead = granted(&store, request(&run, 1, later(0))).await;
    let instead = |pid| LeaseClaim {
        replaces: Some(dead.clone()),
        ..request(&run, pid, later(1))
    };
    let taken = granted(&store, instead(2)).await;
    let late = store.claim(instead(3)).await.unwrap();
    assert!(matches!(late, LeaseClaimOutcome::HeldBy(lease) if lease.token == taken));
}

pub(crate) async fn lost_lease_cannot_write(place: &Place) {
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
    // Events of humans need no lease.
    assert_eq!(here.append(more).await.unwrap()[0].seq, 2);
}

pub(crate) async fn lease_is_valid_only_for_its_run(place: &Place) {
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

/// Many connections repeatedly claim the same run at the same time.
pub(crate) async fn concurrent_claims_have_one_winner(place: &Place) {
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
                LeaseClaimOutcome::Granted(_)
            ));
        }
        assert_eq!(winners, 1);
    }
}
