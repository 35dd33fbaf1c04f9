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
pub(super) struct Wakes {
    stream: UnixStream,
    asked: Arc<AtomicBool>,
    was_asked: Cell<bool>,
}

impl Wakes {
    /// Begins to listen.
    pub(super) fn listen() -> io::Result<Self> {
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
            asked,
            was_asked: Cell::new(false),
        })
    }

    /// Forgets the wake-ups so far; whoever calls it looks at all children afterwards.
    pub(super) fn clear(&mut self) {
        let mut bytes = [0; 64];
        while self
            .stream
            .read(&mut bytes)
            .is_ok_and(|got| got == bytes.len())
        {}
    }

    /// Whether the process was asked to end since the last call.
    pub(super) fn take_asked(&self) -> bool {
        let asked = self.asked.swap(false, Ordering::Relaxed);
        self.was_asked.set(self.was_asked.get() || asked);
        asked
    }

    /// Whether the process was ever asked to end.
    pub(super) fn was_asked(&self) -> bool {
        self.take_asked() || self.was_asked.get()
    }

    /// The descriptor to wait on.
    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }
}
