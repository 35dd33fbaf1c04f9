//! What all connections of a server share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::time::Instant;

use super::capacity::CapacityGate;
use super::key_limits::{Buckets, ServerTime};
use super::lock;
use super::request_log::RequestLog;
use super::stats::StatsCounter;
use super::tls::TlsState;
use crate::clock;
use crate::error::FaultsError;
use crate::script::{Script, ScriptCursor};

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) script: Script,
    pub(super) request_log: Mutex<RequestLog>,
    pub(super) tally: Mutex<StatsCounter>,
    pub(super) tls: Option<TlsState>,
    /// Whether requests are kept or logged.
    pub(super) is_recording: bool,
    script_run: Mutex<ScriptRun>,
    number: AtomicU64,
    /// When the server began; read only inside its runtime.
    started: OnceLock<Instant>,
}

/// What begins anew with the script.
#[derive(Debug)]
pub(super) struct ScriptRun {
    pub(super) cursor: ScriptCursor,
    pub(super) buckets: Option<Buckets>,
    pub(super) capacity: Option<Arc<CapacityGate>>,
    /// When the first request to a model came.
    first_request: Option<Instant>,
}

impl ServerState {
    pub(super) fn new(script: Script, seen: RequestLog) -> Result<Self, FaultsError> {
        Ok(Self {
            is_recording: script.record || seen.is_logged(),
            request_log: Mutex::new(seen),
            tally: Mutex::default(),
            tls: script.tls.as_ref().map(TlsState::new).transpose()?,
            script_run: Mutex::new(ScriptRun::new(&script)),
            number: AtomicU64::new(0),
            started: OnceLock::new(),
            script,
        })
    }

    /// The next request's number, counted from 1.
    pub(super) fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Looks at or changes what is being played.
    pub(super) fn with_script_run<T>(&self, look: impl FnOnce(&mut ScriptRun) -> T) -> T {
        look(&mut lock(&self.script_run))
    }

    /// Begins the script anew, with nothing counted.
    pub(super) fn restart(&self) {
        self.with_script_run(|play| *play = ScriptRun::new(&self.script));
        self.number.store(0, Ordering::Relaxed);
        lock(&self.tally).restart();
        lock(&self.request_log).clear();
    }

    /// The seconds since the server began.
    pub(super) fn uptime_seconds(&self) -> u64 {
        self.started.get_or_init(Instant::now).elapsed().as_secs()
    }

    /// The present moment.
    pub(super) fn now(&self) -> ServerTime {
        let begun = self.started.get_or_init(Instant::now);
        ServerTime {
            clock: clock::now(),
            seconds: begun.elapsed().as_secs_f64(),
        }
    }
}

impl ScriptRun {
    fn new(script: &Script) -> Self {
        let gate = |capacity| Arc::new(CapacityGate::new(capacity, &script.phases));
        Self {
            cursor: ScriptCursor::new(script),
            buckets: script.limits.map(Buckets::new),
            capacity: script.capacity.map(gate),
            first_request: None,
        }
    }

    /// When the first request to a model came: now, if this is it.
    pub(super) fn first_request(&mut self) -> Instant {
        *self.first_request.get_or_insert_with(Instant::now)
    }
}
