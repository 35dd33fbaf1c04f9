//! The server's capacity: requests beyond it are queued, and beyond the queue refused.
//!
//! Work is counted in positions: a request takes the next one and begins when the capacity has reached it. A refusal
//! takes part of a position too, so that a retry storm leaves less capacity for other requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::capacity_schedule::CapacitySchedule;
use super::lock;
use crate::script::{FaultServerCapacityPhase, ServerCapacity};

/// Maximum burst, in seconds of capacity.
const BURST_SECONDS: f64 = 0.02;

/// Maximum delay of other work by refusals, in seconds of capacity.
const MAX_PUSHBACK_SECONDS: f64 = 1.0;

/// The admission gate of a server with limited capacity.
#[derive(Debug)]
pub(super) struct CapacityGate {
    capacity: ServerCapacity,
    schedule: CapacitySchedule,
    queue: Mutex<CapacityQueue>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct CapacityQueue {
    /// Next free position, in requests.
    position: f64,
    waiting: u32,
    /// Number of queued requests whose turn has come but that have no free slot.
    blocked: u32,
    working: u32,
}

/// The right to be processed; released on drop.
#[derive(Debug)]
pub(super) struct CapacityPermit {
    gate: Arc<CapacityGate>,
}

/// A place in the queue; released on drop.
struct QueuePlace<'a> {
    gate: &'a CapacityGate,
    is_blocked: bool,
}

impl CapacityGate {
    pub(super) fn new(capacity: ServerCapacity, phases: &[FaultServerCapacityPhase]) -> Self {
        Self {
            capacity,
            schedule: CapacitySchedule::new(phases),
            queue: Mutex::default(),
            freed: Notify::new(),
        }
    }

    /// Waits for a turn, or returns `None` if the queue is full. `now` returns the seconds since the start.
    pub(super) async fn acquire(self: &Arc<Self>, now: impl Fn() -> f64) -> Option<CapacityPermit> {
        let wait = match self.take_position(now()) {
            QueueTurn::Now => return Some(self.permit()),
            QueueTurn::In(wait) => wait,
            QueueTurn::Never => return None,
        };
        let mut place = QueuePlace {
            gate: self,
            is_blocked: false,
        };
        tokio::time::sleep(wait).await;
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if place.try_begin(now()) {
                return Some(self.permit());
            }
            let change = self.schedule.next_change(now());
            let change = change.map_or(f64::MAX, |change| change - now());
            let change = Duration::try_from_secs_f64(change.clamp(0.0, 3600.0));
            tokio::select! {
                () = freed => {}
                () = tokio::time::sleep(change.unwrap_or_default()) => {}
            }
        }
    }

    fn permit(self: &Arc<Self>) -> CapacityPermit {
        CapacityPermit {
            gate: Arc::clone(self),
        }
    }

    /// Takes the next position, or counts the refusal.
    fn take_position(&self, now: f64) -> QueueTurn {
        let mut queue = lock(&self.queue);
        let wait = self.wait_time(&queue, now);
        let is_free = queue.working < self.worker_slots(now) && queue.blocked == 0;
        if wait.is_zero() && is_free {
            queue.working += 1;
            self.push_back(&mut queue, now, 1.0);
            return QueueTurn::Now;
        }
        if queue.waiting >= self.capacity.queue {
            self.count_refusal(&mut queue, now);
            return QueueTurn::Never;
        }
        queue.waiting += 1;
        self.push_back(&mut queue, now, 1.0);
        QueueTurn::In(wait)
    }

    /// Returns the time until the next free position has its turn.
    fn wait_time(&self, queue: &CapacityQueue, now: f64) -> Duration {
        let Some(rate) = self.capacity.per_second else {
            return Duration::ZERO;
        };
        let position = queue.position.max(self.schedule.work(now) * rate);
        let burst = (rate * BURST_SECONDS).max(1.0);
        let begins = self
            .schedule
            .time_of_work((position - burst + 1.0).max(0.0) / rate);
        let is_closed = self.schedule.share(now) == 0.0;
        let begins = if is_closed {
            begins.max(self.schedule.next_change(now).unwrap_or(now))
        } else {
            begins
        };
        Duration::try_from_secs_f64(begins - now).unwrap_or_default()
    }

    fn push_back(&self, queue: &mut CapacityQueue, now: f64, cost: f64) {
        if let Some(rate) = self.capacity.per_second {
            queue.position = queue.position.max(self.schedule.work(now) * rate) + cost;
        }
    }

    fn count_refusal(&self, queue: &mut CapacityQueue, now: f64) {
        let Some(rate) = self.capacity.per_second else {
            return;
        };
        let pushed = queue.position - self.schedule.work(now) * rate;
        let most = f64::from(self.capacity.queue) + rate * MAX_PUSHBACK_SECONDS;
        if pushed < most {
            self.push_back(queue, now, self.capacity.rejection_cost);
        }
    }

    /// Returns the number of requests that may be processed concurrently.
    fn worker_slots(&self, now: f64) -> u32 {
        let share = self.schedule.share(now);
        match self.capacity.concurrent {
            None => u32::MAX,
            Some(_) if share == 0.0 => 0,
            Some(all) => ((f64::from(all) * share).round() as u32).max(1),
        }
    }
}

enum QueueTurn {
    Now,
    In(Duration),
    Never,
}

impl QueuePlace<'_> {
    /// Takes a processing slot if one is free.
    fn try_begin(&mut self, now: f64) -> bool {
        let mut queue = lock(&self.gate.queue);
        if queue.working < self.gate.worker_slots(now) {
            queue.working += 1;
            return true;
        }
        if !self.is_blocked {
            self.is_blocked = true;
            queue.blocked += 1;
        }
        false
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let mut queue = lock(&self.gate.queue);
        queue.waiting = queue.waiting.saturating_sub(1);
        if self.is_blocked {
            queue.blocked = queue.blocked.saturating_sub(1);
        }
    }
}

impl Drop for CapacityPermit {
    fn drop(&mut self) {
        let mut queue = lock(&self.gate.queue);
        queue.working = queue.working.saturating_sub(1);
        drop(queue);
        self.gate.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(capacity: ServerCapacity) -> CapacityGate {
        CapacityGate::new(capacity, &[])
    }

    /// Returns how many of this many simultaneous requests are admitted now, queued, and refused.
    fn crowd(gate: &CapacityGate, count: usize, now: f64) -> (usize, usize, usize) {
        let mut turns = (0, 0, 0);
        for _ in 0..count {
            match gate.take_position(now) {
                QueueTurn::Now => turns.0 += 1,
                QueueTurn::In(_) => turns.1 += 1,
                QueueTurn::Never => turns.2 += 1,
            }
        }
        turns
    }

    #[test]
    fn requests_beyond_the_slots_queue_and_beyond_the_queue_are_refused() {
        let gate = gate(ServerCapacity {
            concurrent: Some(3),
            queue: 2,
            ..ServerCapacity::default()
        });
        assert_eq!(crowd(&gate, 10, 0.0), (3, 2, 5));
    }

    #[test]
    fn a_rate_limits_admissions_per_second() {
        let gate = gate(ServerCapacity {
            per_second: Some(100.0),
            queue: 0,
            rejection_cost: 0.0,
            ..ServerCapacity::default()
        });
        let begun: usize = (0..10_000)
            .map(|millis| crowd(&gate, 1, f64::from(millis) / 1000.0).0)
            .sum();
        assert!((995..1_005).contains(&begun), "{begun}");
    }

    #[test]
    fn refusals_reduce_the_remaining_capacity() {
        let goodput = |rejection_cost| {
            let gate = gate(ServerCapacity {
                per_second: Some(100.0),
                queue: 0,
                rejection_cost,
                ..ServerCapacity::default()
            });
            (0..10_000)
                .map(|millis| crowd(&gate, 1, f64::from(millis) / 1000.0).0)
                .sum::<usize>()
        };
        // 900 of 1000 per second are refused: at a tenth of the work each, little is left for answers.
        let (free, dear) = (goodput(0.0), goodput(0.1));
        assert!(dear * 3 < free, "{dear} of {free}");
    }
}
