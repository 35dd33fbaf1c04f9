//! Kills a child when this process ends, even by SIGKILL. The only module of this crate with `unsafe` code.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "pre_exec has no safe API")
)]

use std::process::Command;

/// Makes the kernel kill a child when the thread that starts it ends. That thread waits for the child.
#[cfg(target_os = "linux")]
pub(super) fn die_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    // SAFETY: between fork and exec only async-signal-safe system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // A parent that was killed before this call causes no signal.
            if getppid() == Some(parent) {
                Ok(())
            } else {
                Err(rustix::io::Errno::CHILD.into())
            }
        });
    }
}

/// Other systems have no such signal: there the timeout of the command ends it.
#[cfg(not(target_os = "linux"))]
pub(super) fn die_with_parent(_command: &mut Command) {}
