//! What all connections of a server share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::time::Instant;

use super::gate::Gate;
use super::limits::{Buckets, Moment};
use super::locked;
use super::seen::Seen;
use super::stats::Tally;
use super::tls::Secured;
use crate::clock;
use crate::error::FaultsError;
use crate::script::{Cursor, Script};

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) script: Script,
    pub(super) seen: Mutex<Seen>,
    pub(super) tally: Mutex<Tally>,
    pub(super) tls: Option<Secured>,
    /// Whether requests are kept or logged.
    pub(super) keeps: bool,
    play: Mutex<Play>,
    number: AtomicU64,
    /// When the server began; read only inside its runtime.
    begun: OnceLock<Instant>,
}

/// What begins anew with the script.
#[derive(Debug)]
pub(super) struct Play {
    pub(super) cursor: Cursor,
    pub(super) buckets: Option<Buckets>,
    pub(super) gate: Option<Arc<Gate>>,
    /// When the first request to a model came.
    first: Option<Instant>,
}

impl State {
    pub(super) fn new(script: Script, seen: Seen) -> Result<Self, FaultsError> {
        Ok(Self {
            keeps: script.record || seen.is_logged(),
            seen: Mutex::new(seen),
            tally: Mutex::default(),
            tls: script.tls.as_ref().map(Secured::new).transpose()?,
            play: Mutex::new(Play::new(&script)),
            number: AtomicU64::new(0),
            begun: OnceLock::new(),
            script,
        })
    }

    /// The next request's number, counted from 1.
    pub(super) fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Looks at or changes what is being played.
    pub(super) fn play<T>(&self, look: impl FnOnce(&mut Play) -> T) -> T {
        look(&mut locked(&self.play))
    }

    /// Begins the script anew, with nothing counted.
    pub(super) fn restart(&self) {
        self.play(|play| *play = Play::new(&self.script));
        self.number.store(0, Ordering::Relaxed);
        locked(&self.tally).restart();
        locked(&self.seen).forget();
    }

    /// The seconds since the server began.
    pub(super) fn second(&self) -> u64 {
        self.begun.get_or_init(Instant::now).elapsed().as_secs()
    }

    /// The present moment.
    pub(super) fn now(&self) -> Moment {
        let begun = self.begun.get_or_init(Instant::now);
        Moment {
            clock: clock::now(),
            seconds: begun.elapsed().as_secs_f64(),
        }
    }
}

impl Play {
    fn new(script: &Script) -> Self {
        let gate = |capacity| Arc::new(Gate::new(capacity, &script.phases));
        Self {
            cursor: Cursor::new(script),
            buckets: script.limits.map(Buckets::new),
            gate: script.capacity.map(gate),
            first: None,
        }
    }

    /// When the first request to a model came: now, if this is it.
    pub(super) fn first(&mut self) -> Instant {
        *self.first.get_or_insert_with(Instant::now)
    }
}
