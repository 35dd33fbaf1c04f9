//! Kills all descendants of the reaper, however they try to escape.

use std::collections::HashSet;

use rustix::process::Signal;

use crate::os_processes::{ProcessId, process_table, send_signal};

/// Largest number of searches while the found processes are stopped; a faster fork bomb is handled by the next call.
const MAX_ROUNDS: usize = 32;

/// Returns every living descendant of the reaper.
pub(super) fn live_descendants() -> Vec<ProcessId> {
    let own = std::process::id();
    process_table::descendants(own)
        .into_iter()
        .map(ProcessId::from)
        .collect()
}

/// Asks processes to end; continues stopped ones, so that they receive the signal.
pub(super) fn request_end(processes: &[ProcessId]) {
    for process in processes {
        send_signal::signal_process(*process, Signal::TERM);
        send_signal::signal_process(*process, Signal::CONT);
    }
}

/// Kills every process that the search finds and returns them.
///
/// All of them are stopped first, so that none can start another one between being found and being killed.
pub(super) fn kill_all(look: impl Fn() -> Vec<ProcessId>) -> HashSet<ProcessId> {
    let mut found = HashSet::new();
    for _ in 0..MAX_ROUNDS {
        let new: Vec<_> = look()
            .into_iter()
            .filter(|process| found.insert(*process))
            .collect();
        if new.is_empty() {
            break;
        }
        for process in new {
            send_signal::signal_process(process, Signal::STOP);
        }
    }
    for process in &found {
        send_signal::signal_process(*process, Signal::KILL);
    }
    found
}
