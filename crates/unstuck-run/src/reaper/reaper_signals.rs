//! Which signals the reaper listens to: the end of a child, and an interrupt. Those that would end or stop it do
//! nothing, since what happens then is the supervisor's to say.
//!
//! Handlers and not a mask: a mask would be handed down to every child, a handler is not.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::SigSet;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};

use crate::procs::IgnoredSignals;

/// What would end or stop the reaper; the last three come to every member of a group, and it may be in its child's.
const IGNORED_SIGNALS: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU];

/// Becomes readable when a child ended or stopped, and on an interrupt.
pub(super) struct ReaperSignals {
    stream: UnixStream,
    interrupted: Arc<AtomicBool>,
}

impl ReaperSignals {
    /// Begins to listen.
    pub(super) fn install() -> io::Result<Self> {
        SigSet::empty().thread_set_mask()?;
        let ignored = IgnoredSignals::now();
        let interrupted = Arc::new(AtomicBool::new(false));
        let (stream, write) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        // One that is ignored already stays so, for the children too: that is what nohup asks for.
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

    /// Forgets the wake-ups so far; whoever calls it looks at all children afterwards.
    pub(super) fn drain(&mut self) {
        let mut bytes = [0; 64];
        while self
            .stream
            .read(&mut bytes)
            .is_ok_and(|got| got == bytes.len())
        {}
    }

    /// Whether there was an interrupt since the last call.
    pub(super) fn take_interrupt(&self) -> bool {
        self.interrupted.swap(false, Ordering::Relaxed)
    }

    /// The descriptor to wait on.
    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }
}
