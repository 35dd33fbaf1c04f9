//! Wakes the processes of a sandbox: when a child of theirs ended, and when they are asked to end.
//!
//! Handlers and not a mask: a mask would be handed down to the command, a handler is not.

use std::cell::Cell;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Becomes readable when a child ended and when the process is asked to end.
pub(super) struct SandboxSignals {
    stream: UnixStream,
    is_end_requested: Arc<AtomicBool>,
    was_end_requested: Cell<bool>,
}

impl SandboxSignals {
    /// Begins to listen.
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

    /// Forgets the wake-ups so far; whoever calls it looks at all children afterwards.
    pub(super) fn drain(&mut self) {
        let mut bytes = [0; 64];
        while self
            .stream
            .read(&mut bytes)
            .is_ok_and(|got| got == bytes.len())
        {}
    }

    /// Whether the process was asked to end since the last call.
    pub(super) fn take_end_request(&self) -> bool {
        let asked = self.is_end_requested.swap(false, Ordering::Relaxed);
        self.was_end_requested
            .set(self.was_end_requested.get() || asked);
        asked
    }

    /// Whether the process was ever asked to end.
    pub(super) fn was_end_requested(&self) -> bool {
        self.take_end_request() || self.was_end_requested.get()
    }

    /// The descriptor to wait on.
    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }
}
