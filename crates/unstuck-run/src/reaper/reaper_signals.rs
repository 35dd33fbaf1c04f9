//! The signals that the reaper handles: the end of a child, and an interrupt. Signals that would end or stop it are
//! ignored: the supervisor decides about the end.
//!
//! Handlers instead of a mask: a mask would be inherited by every child, a handler is not.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::SigSet;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};

use crate::os_processes::IgnoredSignals;

/// Signals that would end or stop the reaper; the last three are sent to every member of a group, which may be its
/// child's.
const IGNORED_SIGNALS: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU];

/// A stream that becomes readable when a child ended or stopped, and on an interrupt.
pub(super) struct ReaperSignals {
    stream: UnixStream,
    interrupted: Arc<AtomicBool>,
}

impl ReaperSignals {
    /// Installs the handlers.
    pub(super) fn install() -> io::Result<Self> {
        SigSet::empty().thread_set_mask()?;
        let ignored = IgnoredSignals::now();
        let interrupted = Arc::new(AtomicBool::new(false));
        let (stream, write) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        // A signal that is already ignored stays ignored, for the children too: that is the purpose of nohup.
        let heard = IGNORED_SIGNALS
            .into_iter()
            .filter(|signal| !ignored.contains(*signal));
        for signal in heard {
            let flag = match signal {
                SIGINT => Arc::clone(&interrupted),
                _ => Arc::default(),
            };
            signal_hook::flag::register(signal, flag)?;
            if signal == SIGINT {
                signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
            }
        }
        signal_hook::low_level::pipe::register(SIGCHLD, write)?;
        Ok(Self {
            stream,
            interrupted,
        })
    }

    /// Discards the wake-ups so far; the caller checks all children afterwards.
    pub(super) fn drain(&mut self) {
        let mut bytes = [0; 64];
        while self
            .stream
            .read(&mut bytes)
            .is_ok_and(|got| got == bytes.len())
        {}
    }

    /// Returns true if there was an interrupt since the last call.
    pub(super) fn take_interrupt(&self) -> bool {
        self.interrupted.swap(false, Ordering::Relaxed)
    }

    /// Returns the descriptor to wait on.
    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }
}
