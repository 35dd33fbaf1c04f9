//! Run counts by status, counted by the store and not from a page of runs.

use unstuck_core::views::RunStatus;
use unstuck_run::runner::is_alive;

use crate::model::ProblemDetails;
use crate::server_state::WebState;

/// The number of runs by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActiveRunCounts {
    /// Runs with a running attempt.
    pub running: usize,
    /// Runs that wait until a point in time.
    pub waiting: usize,
    /// Runs that should continue but whose supervising process is gone.
    pub crashed: usize,
    /// All running, waiting, crashed and blocked runs.
    pub active_runs: usize,
    /// Number of those whose sessions are shown.
    pub shown_runs: usize,
}

/// Counts the runs by status; `shown_runs` is limited to the given number.
pub async fn run_status_counts(
    web: &WebState,
    most_shown: usize,
) -> Result<ActiveRunCounts, ProblemDetails> {
    let (leases, now) = (web.store().leases().await?, web.now());
    let mut counts = ActiveRunCounts::default();
    for (run, status) in web.store().unfinished_runs().await? {
        let mut own = leases.iter().filter(|lease| lease.token.run == run);
        let supervised = own.any(|lease| is_alive(lease, now));
        match status {
            RunStatus::Running | RunStatus::Waiting if !supervised => counts.crashed += 1,
            RunStatus::Waiting => counts.waiting += 1,
            RunStatus::Running => counts.running += 1,
            _ => {}
        }
    }
    let all = web.store().count_runs().await?;
    let active = [
        RunStatus::Running,
        RunStatus::Waiting,
        RunStatus::AwaitingHuman,
    ];
    let active: u64 = active.iter().filter_map(|status| all.get(status)).sum();
    counts.active_runs = usize::try_from(active).unwrap_or(usize::MAX);
    counts.shown_runs = counts.active_runs.min(most_shown);
    Ok(counts)
}
