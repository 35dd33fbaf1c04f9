//! Those who wait at a lane, and who of them goes next.
//!
//! First tries and retries wait in lines of their own: a retry that the budget holds must not hold the first tries that
//! fill the budget.

use super::controller::{
    AdmissionController, AdmissionDecision, AdmissionRequest, ApiAttemptKind, HoldReason,
};
use super::fair_queue::{FairQueue, QueueTicket};
use crate::time::Timestamp;

/// Those who wait at a lane.
#[derive(Debug, Clone)]
pub struct WaitQueue<T> {
    first_attempts: FairQueue<(AdmissionRequest, T)>,
    retries: FairQueue<(AdmissionRequest, T)>,
}

/// A place in a [`Line`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WaitTicket {
    is_first_attempt: bool,
    ticket: QueueTicket,
}

/// Who goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAdmission<T> {
    /// This one goes now.
    Admit(T),
    /// Nobody before the moment, or before a call ends.
    Wait {
        /// When to ask again.
        until: Timestamp,
        /// What holds the one whose turn it is.
        why: HoldReason,
    },
    /// Nobody waits.
    Empty,
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        Self {
            first_attempts: FairQueue::default(),
            retries: FairQueue::default(),
        }
    }
}

impl<T> WaitQueue<T> {
    /// Somebody of a session queues up; see [`FairQueue::push`] for the cost.
    pub fn push(&mut self, session: &str, cost: u64, ask: AdmissionRequest, item: T) -> WaitTicket {
        let first = ask.attempt == ApiAttemptKind::First;
        let queue = if first {
            &mut self.first_attempts
        } else {
            &mut self.retries
        };
        WaitTicket {
            is_first_attempt: first,
            ticket: queue.push(session, cost, (ask, item)),
        }
    }

    /// Somebody no longer waits; none if they have gone already.
    pub fn remove(&mut self, place: WaitTicket) -> Option<T> {
        let queue = if place.is_first_attempt {
            &mut self.first_attempts
        } else {
            &mut self.retries
        };
        queue.remove(place.ticket).map(|(_, item)| item)
    }

    /// Lets the next one go if the lane admits it. Retries go before first tries: they have waited for longer.
    pub fn next_admission(
        &mut self,
        lane: &mut AdmissionController,
        now: Timestamp,
    ) -> NextAdmission<T> {
        let mut held: Option<(Timestamp, HoldReason)> = None;
        for queue in [&mut self.retries, &mut self.first_attempts] {
            let Some((ask, _)) = queue.peek() else {
                continue;
            };
            match lane.admit(*ask, now) {
                AdmissionDecision::Admit => {
                    if let Some((_, item)) = queue.pop() {
                        return NextAdmission::Admit(item);
                    }
                }
                AdmissionDecision::Wait { until, why }
                | AdmissionDecision::Refuse { until, why } => {
                    if held.is_none_or(|(known, _)| until < known) {
                        held = Some((until, why));
                    }
                }
            }
        }
        held.map_or(NextAdmission::Empty, |(until, why)| NextAdmission::Wait {
            until,
            why,
        })
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.first_attempts.len() + self.retries.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.first_attempts.is_empty() && self.retries.is_empty()
    }
}
