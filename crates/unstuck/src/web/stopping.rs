//! Stopping a run: the process that drives it is told to, as by Ctrl-C.

use rustix::process::{Pid, Signal, kill_process};
use unstuck_core::event::RunId;
use unstuck_run::drive::{is_alive, is_ours, request_stop};
use unstuck_web::deeds::DeedError;

use super::Doer;
use crate::clock;
use crate::supervise::state_folder;

/// Tells the process that drives a run to stop; what it was doing can be taken up again.
pub(super) async fn stop(doer: &Doer, run: RunId) -> Result<(), DeedError> {
    doer.0.only_for_people()?;
    let leases = doer.0.store.leases().await?;
    let lease = leases.into_iter().find(|lease| lease.token.run == run);
    let lease = lease.filter(|lease| is_alive(lease, clock::now().at));
    let Some(lease) = lease else {
        return Err(DeedError::Conflict(format!(
            "nobody drives run {run} at this moment; there is nothing to stop"
        )));
    };
    let owner = &lease.owner;
    if owner.pid == std::process::id() && is_ours(&lease) {
        return Err(DeedError::Conflict(format!(
            "run {run} is a client of this gateway; stop the client itself"
        )));
    }
    let pid = i32::try_from(owner.pid).ok().and_then(Pid::from_raw);
    // A process of another machine, or one that only has the same number, is not ours to end.
    let Some(pid) = pid.filter(|_| is_ours(&lease)) else {
        return Err(DeedError::Conflict(format!(
            "run {run} is driven by process {} on {}, which cannot be reached from here",
            owner.pid, owner.host
        )));
    };
    let view = doer.0.store.story(&run).await?;
    if view.is_some_and(|story| crate::run_words::is_clients(&story.view)) {
        return Err(DeedError::Conflict(format!(
            "run {run} is a client of a gateway; stop the client itself"
        )));
    }
    // Without the request it is recorded as ended by SIGTERM, which is true as well.
    let _ = request_stop(&state_folder(&doer.0.location), &run);
    kill_process(pid, Signal::TERM).map_err(|error| {
        DeedError::Unavailable(format!("process {} cannot be told: {error}", owner.pid))
    })
}
