//! Sends signals to processes, and never to one that only reuses the number.

#[cfg(target_os = "linux")]
use rustix::process::PidfdFlags;
use rustix::process::{Pid, Signal};

use super::identity::ProcessId;

/// Converts a number to a process id of the system.
pub(crate) fn to_pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Signals exactly this process; returns true if it existed and could be signaled.
pub(crate) fn signal_process(process: ProcessId, signal: Signal) -> bool {
    let Some(number) = to_pid(process.pid) else {
        return false;
    };
    signal_if_alive(process, number, signal)
}

#[cfg(target_os = "linux")]
fn signal_if_alive(process: ProcessId, number: Pid, signal: Signal) -> bool {
    // The handle pins the process; only then is its start time reliable.
    let Ok(handle) = rustix::process::pidfd_open(number, PidfdFlags::empty()) else {
        return false;
    };
    process.is_alive() && rustix::process::pidfd_send_signal(handle, signal).is_ok()
}

/// Signals a process if it is alive. Without a handle it could end and its number be reused between check and signal.
#[cfg(not(target_os = "linux"))]
fn signal_if_alive(process: ProcessId, number: Pid, signal: Signal) -> bool {
    process.is_alive() && rustix::process::kill_process(number, signal).is_ok()
}

/// Signals a group, or only its leader if the group does not exist yet.
pub(crate) fn signal_group(leader: Pid, signal: Signal) {
    if rustix::process::kill_process_group(leader, signal).is_err() {
        // Neither exists: it has ended, which is fine for every caller.
        let _ = rustix::process::kill_process(leader, signal);
    }
}
