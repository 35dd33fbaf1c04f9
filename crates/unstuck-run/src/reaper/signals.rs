//! Which signals the reaper listens to: the end of a child. Those that would end itself it only takes note of,
//! since what happens then is the supervisor's to say.
//!
//! Handlers and not a mask: a mask would be handed down to every child, a handler is not.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::sys::signal::SigSet;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

/// Becomes readable when a child ended or stopped.
pub(super) struct Wakes(UnixStream);

impl Wakes {
    /// Begins to listen.
    pub(super) fn listen() -> io::Result<Self> {
        SigSet::empty().thread_set_mask()?;
        let ignored = ignored();
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP] {
            // One that is ignored already stays so, for the children too: that is what nohup asks for.
            if ignored >> (signal - 1) & 1 == 0 {
                signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
            }
        }
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, write)?;
        Ok(Self(read))
    }

    /// Forgets the wake-ups so far; whoever calls it looks at all children afterwards.
    pub(super) fn clear(&mut self) {
        let mut bytes = [0; 64];
        while self.0.read(&mut bytes).is_ok_and(|got| got == bytes.len()) {}
    }

    /// The descriptor to wait on.
    pub(super) fn stream(&self) -> &UnixStream {
        &self.0
    }
}

/// The signals that were ignored when we were started, one bit each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .unwrap_or_default();
    u64::from_str_radix(line.trim(), 16).unwrap_or(0)
}
