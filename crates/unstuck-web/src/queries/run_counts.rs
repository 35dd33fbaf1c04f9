//! How many runs stand where: counted by the store, not on a page.

use unstuck_core::views::RunStatus;
use unstuck_run::runner::is_alive;

use crate::model::ProblemDetails;
use crate::server_state::WebState;

/// How many runs stand where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunStatusCounts {
    /// An attempt is under way.
    pub running: usize,
    /// A moment is waited for.
    pub waiting: usize,
    /// They should go on by themselves, but the process that drove them is gone.
    pub crashed: usize,
    /// All that run, wait, have crashed or need a person.
    pub active_runs: usize,
    /// Of how many of those the sessions are shown.
    pub shown_runs: usize,
}

/// How many runs stand where, when the sessions of at most so many are shown.
pub async fn run_status_counts(
    web: &WebState,
    most_shown: usize,
) -> Result<RunStatusCounts, ProblemDetails> {
    let (leases, now) = (web.store().leases().await?, web.now());
    let mut counts = RunStatusCounts::default();
    for (run, status) in web.store().unfinished_runs().await? {
        let mut own = leases.iter().filter(|lease| lease.token.run == run);
        let driven = own.any(|lease| is_alive(lease, now));
        match status {
            RunStatus::Running | RunStatus::Waiting if !driven => counts.crashed += 1,
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
