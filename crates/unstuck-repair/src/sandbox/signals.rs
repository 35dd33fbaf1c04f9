//! Signal handling of the sandbox processes: a child ended, or termination was requested.
//!
//! Uses handlers instead of a mask: the command would inherit a mask, but not a handler.

use std::cell::Cell;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// A wake-up stream that becomes readable when a child ended or termination was requested.
pub(super) struct SignalWakeup {
    stream: UnixStream,
    is_end_requested: Arc<AtomicBool>,
    was_end_requested: Cell<bool>,
}

impl SignalWakeup {
    /// Installs the handlers.
    pub(super) fn install() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let (stream, write) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, write)?;
        Ok(Self {
            stream,
            is_end_requested: asked,
            was_end_requested: Cell::new(false),
        })
    }

    /// Discards pending wake-ups; the caller checks all children afterwards.
    pub(super) fn drain(&mut self) {
        let mut bytes = [0; 64];
        while self
            .stream
            .read(&mut bytes)
            .is_ok_and(|got| got == bytes.len())
        {}
    }

    /// Returns true if termination was requested since the last call.
    pub(super) fn take_end_request(&self) -> bool {
        let asked = self.is_end_requested.swap(false, Ordering::Relaxed);
        self.was_end_requested
            .set(self.was_end_requested.get() || asked);
        asked
    }

    /// True if termination was ever requested.
    pub(super) fn was_end_requested(&self) -> bool {
        self.take_end_request() || self.was_end_requested.get()
    }

    /// Returns the descriptor to wait on.
    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }
}
