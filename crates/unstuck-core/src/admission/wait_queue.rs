//! The queue of held calls.
//!
//! First attempts and retries have separate queues: a retry held by the budget must not block the first attempts that
//! fill the budget.

use super::controller::{
    AdmissionDecision, ApiAdmissionController, ApiAdmissionRequest, ApiAttemptKind, HoldReason,
};
use super::fair_queue::{FairQueue, QueueItemId};
use crate::time::Timestamp;

/// The queue of held calls.
#[derive(Debug, Clone)]
pub struct WaitQueue<T> {
    first_attempts: FairQueue<(ApiAdmissionRequest, T)>,
    retries: FairQueue<(ApiAdmissionRequest, T)>,
}

/// A position in a [`WaitQueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AdmissionWaitTicket {
    is_first_attempt: bool,
    ticket: QueueItemId,
}

/// The next admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAdmission<T> {
    /// This item may go now.
    Admit(T),
    /// No item may go before `until`, unless a call ends.
    Wait {
        /// The time of the next admission request.
        until: Timestamp,
        /// The reason that holds the next item.
        why: HoldReason,
    },
    /// The queue is empty.
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
    /// Adds an item of a session; see [`FairQueue::push`] for the cost.
    pub fn push(
        &mut self,
        session: &str,
        cost: u64,
        ask: ApiAdmissionRequest,
        item: T,
    ) -> AdmissionWaitTicket {
        let first = ask.attempt == ApiAttemptKind::First;
        let queue = if first {
            &mut self.first_attempts
        } else {
            &mut self.retries
        };
        AdmissionWaitTicket {
            is_first_attempt: first,
            ticket: queue.push(session, cost, (ask, item)),
        }
    }

    /// Removes an item; none if it is already gone.
    pub fn remove(&mut self, place: AdmissionWaitTicket) -> Option<T> {
        let queue = if place.is_first_attempt {
            &mut self.first_attempts
        } else {
            &mut self.retries
        };
        queue.remove(place.ticket).map(|(_, item)| item)
    }

    /// Removes and returns the next item if the controller admits it. Retries go before first attempts: they have
    /// waited longer.
    pub fn next_admission(
        &mut self,
        lane: &mut ApiAdmissionController,
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

    /// The number of waiting items.
    pub fn len(&self) -> usize {
        self.first_attempts.len() + self.retries.len()
    }

    /// Returns true if no item waits.
    pub fn is_empty(&self) -> bool {
        self.first_attempts.is_empty() && self.retries.is_empty()
    }
}
