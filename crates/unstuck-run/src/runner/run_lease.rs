//! The right to drive a run, kept alive by a heartbeat for as long as it is held.
#![expect(
    clippy::disallowed_methods,
    reason = "files of the system, which no agent can put there"
)]

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use unstuck_core::{RunId, Timestamp};
use unstuck_store::{ClaimOutcome, ClaimRequest, Lease, LeaseOwner, LeaseToken, Store, StoreError};

use super::error::RunError;
use crate::clock::Clock;
use crate::process::ProcessId;

/// How often the lease is renewed; it lasts three times as long.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// A lease that is held, and renewed by itself.
pub(super) struct RunLease {
    token: LeaseToken,
    lost: watch::Receiver<bool>,
    heartbeat: JoinHandle<()>,
}

impl RunLease {
    /// Claims a run that nobody else can know of yet.
    pub(super) async fn claim_new(
        store: &Store,
        run: &RunId,
        clock: Clock,
    ) -> Result<Self, RunError> {
        match store.claim(claim_request(run, clock)).await? {
            ClaimOutcome::Granted(token) => Ok(Self::with_heartbeat(store, token, clock)),
            ClaimOutcome::HeldBy(lease) => Err(already_active_error(lease)),
        }
    }

    /// Claims a run; takes it over from a process that is no longer there.
    pub(super) async fn claim(store: &Store, run: &RunId, clock: Clock) -> Result<Self, RunError> {
        let mut request = claim_request(run, clock);
        // A process that was stopped or slept renews nothing, and goes on all the same when it is woken.
        let leases = store.leases().await?;
        let of_run = leases.into_iter().find(|lease| lease.token.run == *run);
        if let Some(lease) = of_run.filter(|lease| is_owner_alive_here(lease, &request.owner)) {
            return Err(already_active_error(lease));
        }
        loop {
            match store.claim(request.clone()).await? {
                ClaimOutcome::Granted(token) => {
                    return Ok(Self::with_heartbeat(store, token, clock));
                }
                ClaimOutcome::HeldBy(lease) if is_owner_dead(&lease, &request.owner) => {
                    request.replaces = Some(lease.token);
                }
                ClaimOutcome::HeldBy(lease) => return Err(already_active_error(lease)),
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

    /// Tells whether another process has taken the run over.
    pub(super) fn takeover_signal(&self) -> watch::Receiver<bool> {
        self.lost.clone()
    }

    /// Gives the run up for others to drive.
    pub(super) async fn release(self, store: &Store) -> Result<(), StoreError> {
        self.heartbeat.abort();
        store.release(&self.token).await
    }
}

/// Comes when another process has taken the run over.
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

/// This process, as the owner of what it drives.
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

/// Whether the process that holds a lease is still there, as far as can be told from here.
pub fn is_alive(lease: &Lease, now: Timestamp) -> bool {
    !lease.is_expired(now) && !is_owner_dead(lease, &current_owner())
}

/// Whether a lease is held by a process of this machine that is there at this moment.
pub fn is_held_here(lease: &Lease) -> bool {
    let ours = current_owner();
    ours.started != 0 && is_owner_alive_here(lease, &ours)
}

fn claim_request(run: &RunId, clock: Clock) -> ClaimRequest {
    ClaimRequest {
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

/// Whether the owner is a process of this machine that is still there.
fn is_owner_alive_here(lease: &Lease, ours: &LeaseOwner) -> bool {
    lease.owner.host == ours.host && !is_owner_dead(lease, ours)
}

/// Whether the owner was a process of this machine that has ended.
fn is_owner_dead(lease: &Lease, ours: &LeaseOwner) -> bool {
    let owner = &lease.owner;
    // Whoever cannot see itself in the table of processes cannot tell who is missing from it.
    if owner.host != ours.host || ours.started == 0 {
        return false;
    }
    let process = ProcessId {
        pid: owner.pid,
        started: owner.started,
    };
    owner.boot != ours.boot || !process.is_alive()
}
