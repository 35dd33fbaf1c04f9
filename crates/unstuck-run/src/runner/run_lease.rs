//! The lease of a run, renewed by a heartbeat as long as it is held.
#![expect(
    clippy::disallowed_methods,
    reason = "files of the system, which no agent can put there"
)]

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use unstuck_core::{RunId, Timestamp};
use unstuck_store::{
    Lease, LeaseClaim, LeaseClaimOutcome, LeaseOwner, LeaseToken, Store, StoreError,
};

use super::error::RunError;
use crate::clock::Clock;
use crate::process::ProcessId;

/// Interval of the heartbeat; a lease lasts three times as long.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// A lease that is held and renewed automatically.
pub(super) struct RunLease {
    token: LeaseToken,
    lost: watch::Receiver<bool>,
    heartbeat: JoinHandle<()>,
}

impl RunLease {
    /// Claims a new run that no other process can know of.
    pub(super) async fn claim_new(
        store: &Store,
        run: &RunId,
        clock: Clock,
    ) -> Result<Self, RunError> {
        match store.claim(claim_request(run, clock)).await? {
            LeaseClaimOutcome::Granted(token) => Ok(Self::with_heartbeat(store, token, clock)),
            LeaseClaimOutcome::HeldBy(lease) => Err(already_active_error(lease)),
        }
    }

    /// Claims a run; takes it over from a process that no longer exists.
    pub(super) async fn claim(store: &Store, run: &RunId, clock: Clock) -> Result<Self, RunError> {
        let mut request = claim_request(run, clock);
        // A process that was stopped or suspended does not renew its lease, but continues when it wakes up.
        let leases = store.leases().await?;
        let of_run = leases.into_iter().find(|lease| lease.token.run == *run);
        if let Some(lease) = of_run.filter(|lease| is_owner_alive_here(lease, &request.owner)) {
            return Err(already_active_error(lease));
        }
        loop {
            match store.claim(request.clone()).await? {
                LeaseClaimOutcome::Granted(token) => {
                    return Ok(Self::with_heartbeat(store, token, clock));
                }
                LeaseClaimOutcome::HeldBy(lease) if is_owner_dead(&lease, &request.owner) => {
                    request.replaces = Some(lease.token);
                }
                LeaseClaimOutcome::HeldBy(lease) => return Err(already_active_error(lease)),
            }
        }
    }

    fn with_heartbeat(store: &Store, token: LeaseToken, clock: Clock) -> Self {
        let (tell, lost) = watch::channel(false);
        let (store, beaten) = (store.clone(), token.clone());
        let heartbeat = tokio::spawn(async move {
            loop {
                tokio::time::sleep(HEARTBEAT_INTERVAL).await;
                let renewed = store.renew(&beaten, clock.timestamp()).await;
                if let Err(StoreError::LostLease { .. }) = renewed {
                    tell.send_replace(true);
                    return;
                }
            }
        });
        Self {
            token,
            lost,
            heartbeat,
        }
    }

    pub(super) fn token(&self) -> LeaseToken {
        self.token.clone()
    }

    /// Returns a receiver of the takeover by another process.
    pub(super) fn takeover_signal(&self) -> watch::Receiver<bool> {
        self.lost.clone()
    }

    /// Releases the run for other processes.
    pub(super) async fn release(self, store: &Store) -> Result<(), StoreError> {
        self.heartbeat.abort();
        store.release(&self.token).await
    }
}

/// Completes when another process has taken over the run.
pub(super) async fn wait_until_lost(mut taken_over: watch::Receiver<bool>) {
    if taken_over.wait_for(|lost| *lost).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Drop for RunLease {
    fn drop(&mut self) {
        self.heartbeat.abort();
    }
}

/// Returns this process as the owner of a lease.
pub fn current_owner() -> LeaseOwner {
    let own = ProcessId::own();
    LeaseOwner {
        host: rustix::system::uname().nodename().to_string_lossy().into(),
        boot: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|id| id.trim().to_owned())
            .unwrap_or_default(),
        pid: own.pid,
        started: own.started,
    }
}

/// Returns true if the process that holds a lease still exists, as far as this machine can tell.
pub fn is_alive(lease: &Lease, now: Timestamp) -> bool {
    !lease.is_expired(now) && !is_owner_dead(lease, &current_owner())
}

/// Returns true if a lease is held by a running process of this machine.
pub fn is_held_here(lease: &Lease) -> bool {
    let ours = current_owner();
    ours.started != 0 && is_owner_alive_here(lease, &ours)
}

fn claim_request(run: &RunId, clock: Clock) -> LeaseClaim {
    LeaseClaim {
        run: run.clone(),
        owner: current_owner(),
        now: clock.timestamp(),
        replaces: None,
    }
}

fn already_active_error(lease: Lease) -> RunError {
    RunError::AlreadyActive {
        run: lease.token.run,
        pid: lease.owner.pid,
        host: lease.owner.host,
        seen: lease.heartbeat,
    }
}

/// Returns true if the owner is a running process of this machine.
fn is_owner_alive_here(lease: &Lease, ours: &LeaseOwner) -> bool {
    lease.owner.host == ours.host && !is_owner_dead(lease, ours)
}

/// Returns true if the owner was a process of this machine that has ended.
fn is_owner_dead(lease: &Lease, ours: &LeaseOwner) -> bool {
    let owner = &lease.owner;
    // A process that cannot see itself in the process table cannot tell which processes are missing from it.
    if owner.host != ours.host || ours.started == 0 {
        return false;
    }
    let process = ProcessId {
        pid: owner.pid,
        started: owner.started,
    };
    owner.boot != ours.boot || !process.is_alive()
}
