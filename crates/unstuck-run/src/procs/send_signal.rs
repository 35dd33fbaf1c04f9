//! Sends signals to processes, and never to one that only took over the number.

#[cfg(target_os = "linux")]
use rustix::process::PidfdFlags;
use rustix::process::{Pid, Signal};

use super::identity::ProcessId;

/// A number as the system takes it.
pub(crate) fn to_pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Signals exactly this process; whether it was there and could be reached.
pub(crate) fn signal_process(process: ProcessId, signal: Signal) -> bool {
    let Some(number) = to_pid(process.pid) else {
        return false;
    };
    signal_if_alive(process, number, signal)
}

#[cfg(target_os = "linux")]
fn signal_if_alive(process: ProcessId, number: Pid, signal: Signal) -> bool {
    // The handle pins the process; only after that is it certain whose start is read.
    let Ok(handle) = rustix::process::pidfd_open(number, PidfdFlags::empty()) else {
        return false;
    };
    process.is_alive() && rustix::process::pidfd_send_signal(handle, signal).is_ok()
}

/// Nothing pins a process here: it could end, and its number be given away, between the look and the signal.
#[cfg(not(target_os = "linux"))]
fn signal_if_alive(process: ProcessId, number: Pid, signal: Signal) -> bool {
    process.is_alive() && rustix::process::kill_process(number, signal).is_ok()
}

/// Signals a group, or its leader alone while it has not become one yet.
pub(crate) fn signal_group(leader: Pid, signal: Signal) {
    if rustix::process::kill_process_group(leader, signal).is_err() {
        // Neither is there: it has ended, which is what every caller wants to hear.
        let _ = rustix::process::kill_process(leader, signal);
    }
}
