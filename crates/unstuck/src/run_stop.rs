//! Stops a run by telling its supervising process, as with Ctrl-C. The run can be resumed afterwards.

use rustix::process::{Pid, Signal, kill_process};
use unstuck_core::event::RunId;
use unstuck_run::runner::{is_alive, is_held_here, request_stop};
use unstuck_store::{Lease, Store, StoreError, StoreLocation};

use crate::clock;
use crate::run_supervision::state_dir;
use crate::run_title::is_gateway_client;

/// Reasons why a run was not stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StopError {
    #[error("run {0} is not active; nothing to stop")]
    NotActive(RunId),
    #[error("run {0} is a client of a gateway; stop the client itself")]
    Client(RunId),
    #[error("run {run} is active (pid {pid} on {host}), which is not reachable from here")]
    OutOfReach { run: RunId, pid: u32, host: String },
    #[error("cannot signal process {pid}: {error}")]
    Signal { pid: u32, error: rustix::io::Errno },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Tells the process that supervises a run to stop, and returns its id.
pub(crate) async fn stop_run(
    store: &Store,
    location: &StoreLocation,
    run: &RunId,
) -> Result<u32, StopError> {
    let Some(lease) = lease_of(store, run).await? else {
        return Err(StopError::NotActive(run.clone()));
    };
    let story = store.timeline(run).await?;
    let pid = lease.owner.pid;
    let is_self = pid == std::process::id() && is_held_here(&lease);
    if is_self || story.is_some_and(|story| is_gateway_client(&story.summary)) {
        return Err(StopError::Client(run.clone()));
    }
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // A process on another machine, or a reused process id, must not be signaled.
    let Some(process) = process.filter(|_| is_held_here(&lease)) else {
        return Err(StopError::OutOfReach {
            run: run.clone(),
            pid,
            host: lease.owner.host,
        });
    };
    // Without the request, the run is recorded as ended by SIGTERM, which is also true.
    let _ = request_stop(&state_dir(location), run);
    kill_process(process, Signal::TERM).map_err(|error| StopError::Signal { pid, error })?;
    Ok(pid)
}

/// Returns the lease of the process that supervises a run, if any.
pub(crate) async fn lease_of(store: &Store, run: &RunId) -> Result<Option<Lease>, StoreError> {
    let leases = store.leases().await?;
    let lease = leases.into_iter().find(|lease| lease.token.run == *run);
    Ok(lease.filter(|lease| is_alive(lease, clock::now().at)))
}
