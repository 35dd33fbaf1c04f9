//! The state shared by all connections of a server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::time::Instant;

use super::capacity::CapacityGate;
use super::key_limits::{Buckets, TimestampAndUptime};
use super::lock;
use super::request_log::RequestLog;
use super::stats::StatsCounter;
use super::tls::TlsState;
use crate::clock;
use crate::error::FaultServerError;
use crate::script::{FaultScript, ScriptCursor};

/// The state shared by all connections of a server.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) script: FaultScript,
    pub(super) request_log: Mutex<RequestLog>,
    pub(super) tally: Mutex<StatsCounter>,
    pub(super) tls: Option<TlsState>,
    /// If set, requests are kept or logged.
    pub(super) is_recording: bool,
    script_run: Mutex<ScriptRun>,
    number: AtomicU64,
    /// Start of the server; read only inside its runtime.
    started: OnceLock<Instant>,
}

/// The state that a restart of the script resets.
#[derive(Debug)]
pub(super) struct ScriptRun {
    pub(super) cursor: ScriptCursor,
    pub(super) buckets: Option<Buckets>,
    pub(super) capacity: Option<Arc<CapacityGate>>,
    /// Time of the first model call.
    first_request: Option<Instant>,
}

impl ServerState {
    pub(super) fn new(script: FaultScript, seen: RequestLog) -> Result<Self, FaultServerError> {
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

    /// Returns the number of the next request, starting at 1.
    pub(super) fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Reads or changes the running script.
    pub(super) fn with_script_run<T>(&self, look: impl FnOnce(&mut ScriptRun) -> T) -> T {
        look(&mut lock(&self.script_run))
    }

    /// Restarts the script and clears all counts.
    pub(super) fn restart(&self) {
        self.with_script_run(|play| *play = ScriptRun::new(&self.script));
        self.number.store(0, Ordering::Relaxed);
        lock(&self.tally).restart();
        lock(&self.request_log).clear();
    }

    /// Returns the seconds since the server started.
    pub(super) fn uptime_seconds(&self) -> u64 {
        self.started.get_or_init(Instant::now).elapsed().as_secs()
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> TimestampAndUptime {
        let begun = self.started.get_or_init(Instant::now);
        TimestampAndUptime {
            clock: clock::now(),
            seconds: begun.elapsed().as_secs_f64(),
        }
    }
}

impl ScriptRun {
    fn new(script: &FaultScript) -> Self {
        let gate = |capacity| Arc::new(CapacityGate::new(capacity, &script.phases));
        Self {
            cursor: ScriptCursor::new(script),
            buckets: script.limits.map(Buckets::new),
            capacity: script.capacity.map(gate),
            first_request: None,
        }
    }

    /// Returns the time of the first model call, which is now if this is the first.
    pub(super) fn first_request(&mut self) -> Instant {
        *self.first_request.get_or_insert_with(Instant::now)
    }
}
