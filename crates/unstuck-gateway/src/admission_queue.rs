//! The admission queues that sessions share: one per upstream, key and model. Calls that are not admitted wait in the
//! queue.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use unstuck_core::admission::{
    AdmissionControllerState, AdmissionDecision, AdmissionWaitTicket, ApiAdmissionController,
    ApiAdmissionRequest, ApiAdmissionSettings, HoldReason, NextAdmission, ResponseRateLimits,
    WaitQueue,
};
use unstuck_core::{FailureKind, Timestamp};

use crate::system_clock;

/// The key of an admission queue: upstream, API key and model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AdmissionQueueKey {
    pub(crate) upstream: String,
    /// A hash of the API key.
    pub(crate) key: u64,
    pub(crate) model: String,
}

impl AdmissionQueueKey {
    pub(crate) fn new(upstream: &str, key: &[u8], model: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Self {
            upstream: upstream.to_owned(),
            key: hasher.finish(),
            model: model.to_owned(),
        }
    }
}

/// Longer waits are reported.
const NOTIFY_AFTER: Duration = Duration::from_secs(1);
/// The interval for reporting a wait of unknown end again.
const NOTIFY_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// The admission queues of a gateway.
pub(crate) struct AdmissionQueues {
    settings: ApiAdmissionSettings,
    known: Mutex<HashMap<AdmissionQueueKey, Arc<AdmissionQueue>>>,
}

/// The admission control of one upstream, key and model, with the queue of waiting calls.
pub(crate) struct AdmissionQueue {
    state: Mutex<AdmissionQueueState>,
    changed: Notify,
}

struct AdmissionQueueState {
    lane: ApiAdmissionController,
    queue: WaitQueue<oneshot::Sender<()>>,
    /// True while a task serves the queue.
    is_served: bool,
}

/// The reason why a call waits for admission, and the end of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdmissionWait {
    pub(crate) until: Timestamp,
    pub(crate) reason: HoldReason,
}

impl AdmissionQueues {
    pub(crate) fn new(settings: ApiAdmissionSettings) -> Self {
        Self {
            settings,
            known: Mutex::default(),
        }
    }

    /// Returns the lane of a key.
    pub(crate) fn get(&self, key: &AdmissionQueueKey) -> Arc<AdmissionQueue> {
        let mut known = lock(&self.known);
        if let Some(lane) = known.get(key) {
            return Arc::clone(lane);
        }
        let lane = Arc::new(AdmissionQueue {
            state: Mutex::new(AdmissionQueueState {
                lane: ApiAdmissionController::new(
                    self.settings.clone(),
                    system_clock::timestamp_now(),
                ),
                queue: WaitQueue::default(),
                is_served: false,
            }),
            changed: Notify::new(),
        });
        known.insert(key.clone(), Arc::clone(&lane));
        lane
    }

    /// Returns the state of all lanes.
    pub(crate) fn states(
        &self,
        now: Timestamp,
    ) -> Vec<(AdmissionQueueKey, AdmissionControllerState)> {
        let known = lock(&self.known);
        let mut states: Vec<_> = known
            .iter()
            .map(|(key, lane)| (key.clone(), lane.state().lane.state(now)))
            .collect();
        states.sort_by(|a, b| a.0.cmp(&b.0));
        states
    }
}

/// The limits of a wait for admission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmissionWaitLimit {
    /// The maximum wait.
    pub(crate) max_wait: Duration,
    /// If set, a fallback exists, so an upstream that is down need not be waited for.
    pub(crate) has_fallback: bool,
}

impl AdmissionQueue {
    /// Waits for admission. Returns the reason at once if the wait exceeds its limit, and reports it while waiting.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        session: &str,
        ask: ApiAdmissionRequest,
        patience: AdmissionWaitLimit,
        tell: impl Fn(AdmissionWait),
    ) -> Result<AdmissionPermit, AdmissionWait> {
        let mut told = None;
        let (waiting, place) = {
            let mut state = self.state();
            if state.queue.is_empty() {
                let now = system_clock::timestamp_now();
                let (waits, is_down) = match state.lane.admit(ask, now) {
                    AdmissionDecision::Admit => return Ok(AdmissionPermit::new(self)),
                    AdmissionDecision::Wait { until, why } => {
                        (AdmissionWait { until, reason: why }, false)
                    }
                    AdmissionDecision::Refuse { until, why } => {
                        (AdmissionWait { until, reason: why }, true)
                    }
                };
                let is_long = waits.until.since(now) > patience.max_wait;
                if is_long || is_down && patience.has_fallback {
                    return Err(waits);
                }
                if waits.until.since(now) >= NOTIFY_AFTER {
                    tell(waits);
                    told = Some(waits);
                }
            }
            let (go, waiting) = oneshot::channel();
            let place = state.queue.push(session, ask.tokens.max(1), ask, go);
            if !state.is_served {
                state.is_served = true;
                tokio::spawn(Arc::clone(self).serve_queue());
            }
            (
                waiting,
                QueuedCall {
                    lane: self,
                    position: place,
                },
            )
        };
        let went = tokio::select! {
            biased;
            went = waiting => went.is_ok(),
            () = tokio::time::sleep(patience.max_wait) => false,
            () = self.notify_wait(ask, told, tell) => false,
        };
        if went {
            place.admitted();
            return Ok(AdmissionPermit::new(self));
        }
        // It waited as long as it could.
        let why = self
            .state()
            .lane
            .hold_reason(ask, system_clock::timestamp_now());
        Err(AdmissionWait {
            until: system_clock::timestamp_now(),
            reason: why.map_or(HoldReason::Rate, |(_, why)| why),
        })
    }

    /// Admits a call that a person wants to be tried now, past the queue.
    pub(crate) fn acquire_on_request(
        self: &Arc<Self>,
        ask: ApiAdmissionRequest,
    ) -> AdmissionPermit {
        let now = system_clock::timestamp_now();
        self.state().lane.admit_on_request(ask, now);
        AdmissionPermit {
            lane: Some(Arc::clone(self)),
            is_on_request: true,
        }
    }

    /// Reports the reason of the wait, and again when it gets longer; never returns.
    async fn notify_wait(
        &self,
        ask: ApiAdmissionRequest,
        mut told: Option<AdmissionWait>,
        tell: impl Fn(AdmissionWait),
    ) {
        let mut every = NOTIFY_AFTER;
        loop {
            let left = told.map_or(NOTIFY_AFTER, |waits| {
                waits
                    .until
                    .since(system_clock::timestamp_now())
                    .max(NOTIFY_AFTER)
            });
            tokio::time::sleep(left).await;
            let now = system_clock::timestamp_now();
            let (until, why) = self
                .state()
                .lane
                .hold_reason(ask, now)
                .unwrap_or((now, HoldReason::Rate));
            let waits = AdmissionWait {
                until: until.max(now.after(every)),
                reason: why,
            };
            tell(waits);
            told = Some(waits);
            every = every.saturating_mul(2).min(NOTIFY_AGAIN_AFTER);
        }
    }

    /// Admits waiting calls one after the other until the queue is empty.
    async fn serve_queue(self: Arc<Self>) {
        loop {
            let Some(until) = self.admit_waiting() else {
                return;
            };
            let wait = until
                .since(system_clock::timestamp_now())
                .max(Duration::from_millis(1));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    /// Admits all calls that may go; returns the time of the next, or `None` if the queue is empty.
    fn admit_waiting(&self) -> Option<Timestamp> {
        let state = &mut *self.state();
        loop {
            let now = system_clock::timestamp_now();
            match state.queue.next_admission(&mut state.lane, now) {
                NextAdmission::Admit(go) => {
                    if go.send(()).is_err() {
                        state.lane.on_abandoned(now);
                    }
                }
                NextAdmission::Wait { until, .. } => return Some(until),
                NextAdmission::Empty => {
                    state.is_served = false;
                    return None;
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, AdmissionQueueState> {
        lock(&self.state)
    }
}

/// A queued call, which leaves the queue when dropped.
struct QueuedCall<'a> {
    lane: &'a AdmissionQueue,
    position: AdmissionWaitTicket,
}

impl QueuedCall<'_> {
    /// Marks the call as admitted and no longer queued.
    fn admitted(self) {
        std::mem::forget(self);
    }
}

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        self.lane.state().queue.remove(self.position);
    }
}

/// The permit to send one attempt to an upstream, released with its result.
pub(crate) struct AdmissionPermit {
    lane: Option<Arc<AdmissionQueue>>,
    /// True if a person wanted the attempt, in spite of what held it back.
    is_on_request: bool,
}

impl AdmissionPermit {
    fn new(lane: &Arc<AdmissionQueue>) -> Self {
        Self {
            lane: Some(Arc::clone(lane)),
            is_on_request: false,
        }
    }

    /// Records the limits from the headers of a response that has only begun.
    pub(crate) fn record_limits(&self, seen: &ResponseRateLimits) {
        if let Some(shared) = self.lane.as_ref().filter(|_| !seen.is_empty()) {
            shared
                .state()
                .lane
                .on_headers(seen, system_clock::timestamp_now());
        }
    }

    /// Releases the permit after a response.
    pub(crate) fn release_succeeded(
        mut self,
        seen: &ResponseRateLimits,
        tokens: u64,
        took: Duration,
    ) {
        let is_on_request = self.is_on_request;
        self.release(|lane| {
            let now = system_clock::timestamp_now();
            if is_on_request {
                lane.end_stated_limits(now);
            }
            lane.on_success(seen, tokens, took, now);
        });
    }

    /// Releases the permit after a failure.
    pub(crate) fn release_failed(
        mut self,
        kind: FailureKind,
        stated: Option<Duration>,
        seen: &ResponseRateLimits,
    ) {
        self.release(|lane| lane.on_failure(kind, stated, seen, system_clock::timestamp_now()));
    }

    fn release(&mut self, tell: impl FnOnce(&mut ApiAdmissionController)) {
        if let Some(shared) = self.lane.take() {
            let waits = {
                let mut state = shared.state();
                tell(&mut state.lane);
                !state.queue.is_empty()
            };
            if waits {
                shared.changed.notify_one();
            }
        }
    }
}

impl Drop for AdmissionPermit {
    /// The client went away.
    fn drop(&mut self) {
        self.release(|lane| lane.on_abandoned(system_clock::timestamp_now()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
