//! The lanes that sessions share: one for each upstream, key and model. Whoever may not go yet stands in line.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use unstuck_core::traffic::{
    Admission, Ask, Held, Lane, LaneSettings, LaneState, Limits, Line, Next, Place,
};
use unstuck_core::{Kind, Timestamp};

use crate::clock;

/// Which lane a call takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LaneKey {
    pub(crate) upstream: String,
    /// Tells keys apart without telling them.
    pub(crate) key: u64,
    pub(crate) model: String,
}

impl LaneKey {
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

/// A wait of so long is told.
const TOLD: Duration = Duration::from_secs(1);
/// One whose end is not known is told again so often at least.
const TOLD_AGAIN: Duration = Duration::from_secs(30);

/// All lanes.
pub(crate) struct Lanes {
    settings: LaneSettings,
    known: Mutex<HashMap<LaneKey, Arc<Shared>>>,
}

/// A lane and those who wait for it.
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    lane: Lane,
    line: Line<oneshot::Sender<()>>,
    /// Whether somebody sees to those who wait.
    is_served: bool,
}

/// Why a call may not go, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) until: Timestamp,
    pub(crate) why: Held,
}

impl Lanes {
    pub(crate) fn new(settings: LaneSettings) -> Self {
        Self {
            settings,
            known: Mutex::default(),
        }
    }

    /// The lane of a key.
    pub(crate) fn get(&self, key: &LaneKey) -> Arc<Shared> {
        let mut known = lock(&self.known);
        if let Some(lane) = known.get(key) {
            return Arc::clone(lane);
        }
        let lane = Arc::new(Shared {
            state: Mutex::new(State {
                lane: Lane::new(self.settings.clone(), clock::at()),
                line: Line::default(),
                is_served: false,
            }),
            changed: Notify::new(),
        });
        known.insert(key.clone(), Arc::clone(&lane));
        lane
    }

    /// How all lanes stand.
    pub(crate) fn states(&self, now: Timestamp) -> Vec<(LaneKey, LaneState)> {
        let known = lock(&self.known);
        let mut states: Vec<_> = known
            .iter()
            .map(|(key, lane)| (key.clone(), lane.state().lane.state(now)))
            .collect();
        states.sort_by(|a, b| a.0.cmp(&b.0));
        states
    }
}

/// How somebody waits for leave to go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// How long at most.
    pub(crate) most: Duration,
    /// Whether there is somebody else to ask, so that one that is down need not be waited for.
    pub(crate) has_other: bool,
}

impl Shared {
    /// Waits for leave to go. What keeps it back is given at once if that takes longer than there is time, and told while it
    /// waits.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        session: &str,
        ask: Ask,
        patience: Patience,
        tell: impl Fn(Waits),
    ) -> Result<Permit, Waits> {
        let mut told = None;
        let (waiting, place) = {
            let mut state = self.state();
            if state.line.is_empty() {
                let now = clock::at();
                let (waits, is_down) = match state.lane.admit(ask, now) {
                    Admission::Go => return Ok(Permit::new(self)),
                    Admission::Wait { until, why } => (Waits { until, why }, false),
                    Admission::Refuse { until, why } => (Waits { until, why }, true),
                };
                let is_long = waits.until.since(now) > patience.most;
                if is_long || is_down && patience.has_other {
                    return Err(waits);
                }
                if waits.until.since(now) >= TOLD {
                    tell(waits);
                    told = Some(waits);
                }
            }
            let (go, waiting) = oneshot::channel();
            let place = state.line.push(session, ask.tokens.max(1), ask, go);
            if !state.is_served {
                state.is_served = true;
                tokio::spawn(Arc::clone(self).serve());
            }
            (waiting, Waiting { lane: self, place })
        };
        let went = tokio::select! {
            biased;
            went = waiting => went.is_ok(),
            () = tokio::time::sleep(patience.most) => false,
            () = self.tell_wait(ask, told, tell) => false,
        };
        if went {
            place.went();
            return Ok(Permit::new(self));
        }
        // It stood in line for as long as it could.
        let why = self.state().lane.holds(ask, clock::at());
        Err(Waits {
            until: clock::at(),
            why: why.map_or(Held::Pace, |(_, why)| why),
        })
    }

    /// Tells those who stand in line what they wait for, and anew when that takes longer; without end.
    async fn tell_wait(&self, ask: Ask, mut told: Option<Waits>, tell: impl Fn(Waits)) {
        let mut every = TOLD;
        loop {
            let left = told.map_or(TOLD, |waits| waits.until.since(clock::at()).max(TOLD));
            tokio::time::sleep(left).await;
            let now = clock::at();
            let (until, why) = self
                .state()
                .lane
                .holds(ask, now)
                .unwrap_or((now, Held::Pace));
            let waits = Waits {
                until: until.max(now.after(every)),
                why,
            };
            tell(waits);
            told = Some(waits);
            every = every.saturating_mul(2).min(TOLD_AGAIN);
        }
    }

    /// Lets those who wait go, one after the other, until nobody waits.
    async fn serve(self: Arc<Self>) {
        loop {
            let Some(until) = self.let_go() else {
                return;
            };
            let wait = until.since(clock::at()).max(Duration::from_millis(1));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    /// Lets go whoever may; until when the next has to wait, or none if nobody waits.
    fn let_go(&self) -> Option<Timestamp> {
        let state = &mut *self.state();
        loop {
            let now = clock::at();
            match state.line.next(&mut state.lane, now) {
                Next::Go(go) => {
                    if go.send(()).is_err() {
                        state.lane.abandoned(now);
                    }
                }
                Next::Wait { until, .. } => return Some(until),
                Next::Nobody => {
                    state.is_served = false;
                    return None;
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Somebody in line, who leaves it when they no longer wait.
struct Waiting<'a> {
    lane: &'a Shared,
    place: Place,
}

impl Waiting<'_> {
    /// They went, and are no longer in line.
    fn went(self) {
        std::mem::forget(self);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.lane.state().line.remove(self.place);
    }
}

/// Leave for one try; given back with what came of it.
pub(crate) struct Permit {
    lane: Option<Arc<Shared>>,
}

impl Permit {
    fn new(lane: &Arc<Shared>) -> Self {
        Self {
            lane: Some(Arc::clone(lane)),
        }
    }

    /// The headers of an answer that has only begun are known.
    pub(crate) fn saw(&self, seen: &Limits) {
        if let Some(shared) = self.lane.as_ref().filter(|_| !seen.is_empty()) {
            shared.state().lane.saw(seen, clock::at());
        }
    }

    /// The upstream answered.
    pub(crate) fn answered(mut self, seen: &Limits, tokens: u64, took: Duration) {
        self.back(|lane| lane.answered(seen, tokens, took, clock::at()));
    }

    /// The try failed.
    pub(crate) fn failed(mut self, kind: Kind, stated: Option<Duration>, seen: &Limits) {
        self.back(|lane| lane.failed(kind, stated, seen, clock::at()));
    }

    fn back(&mut self, tell: impl FnOnce(&mut Lane)) {
        if let Some(shared) = self.lane.take() {
            let waits = {
                let mut state = shared.state();
                tell(&mut state.lane);
                !state.line.is_empty()
            };
            if waits {
                shared.changed.notify_one();
            }
        }
    }
}

impl Drop for Permit {
    /// The client went away.
    fn drop(&mut self) {
        self.back(|lane| lane.abandoned(clock::at()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
