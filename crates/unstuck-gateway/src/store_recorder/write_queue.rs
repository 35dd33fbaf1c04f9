//! The queue of unwritten records: bounded, so that a store that hangs cannot fill the memory.

use std::collections::VecDeque;

use unstuck_core::event::ApiCallRecord;
use unstuck_core::event::{RunFinished, RunId};
use unstuck_core::{Event, Timestamp};

/// The maximum number of queued calls.
const MAX_CALLS: usize = 20_000;
/// The maximum number of queued events.
const MAX_EVENTS: usize = 10_000;
/// The maximum number of calls per batch.
const CALLS_AT_ONCE: usize = 4096;
/// The maximum number of events per batch.
const EVENTS_AT_ONCE: usize = 256;

/// A queued event of a run.
#[derive(Debug, Clone)]
pub(super) struct QueuedEvent {
    pub(super) run: RunId,
    pub(super) at: Timestamp,
    pub(super) event: Event,
}

/// The records of one write.
#[derive(Debug, Default)]
pub(super) struct WriteBatch {
    /// Runs that begin or continue.
    pub(super) begins: Vec<QueuedEvent>,
    pub(super) events: Vec<QueuedEvent>,
    pub(super) calls: Vec<ApiCallRecord>,
    /// Runs that end.
    pub(super) ends: Vec<QueuedEvent>,
}

impl WriteBatch {
    pub(super) fn is_empty(&self) -> bool {
        self.begins.is_empty()
            && self.events.is_empty()
            && self.calls.is_empty()
            && self.ends.is_empty()
    }
}

/// The queue of unwritten records.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    begins: VecDeque<QueuedEvent>,
    events: VecDeque<QueuedEvent>,
    calls: VecDeque<ApiCallRecord>,
    ends: VecDeque<QueuedEvent>,
    dropped: u64,
}

impl WriteQueue {
    /// Queues the start of a run; without it nothing of the run could be written.
    pub(super) fn push_begin(&mut self, run: RunId, at: Timestamp, event: Event) {
        self.begins.push_back(QueuedEvent { run, at, event });
    }

    /// Queues the ends of runs.
    pub(super) fn push_ends(&mut self, ends: Vec<(RunId, RunFinished)>, at: Timestamp) {
        let ends = ends.into_iter().map(|(run, end)| QueuedEvent {
            run,
            at,
            event: end.into(),
        });
        self.ends.extend(ends);
    }

    pub(super) fn push_event(&mut self, run: RunId, at: Timestamp, event: Event) {
        self.events.push_back(QueuedEvent { run, at, event });
        self.dropped += drop_oldest(&mut self.events, MAX_EVENTS);
    }

    /// Queues a call; returns the number of queued calls.
    pub(super) fn push_call(&mut self, record: ApiCallRecord) -> usize {
        self.calls.push_back(record);
        self.dropped += drop_oldest(&mut self.calls, MAX_CALLS);
        self.calls.len()
    }

    /// Takes the next batch.
    pub(super) fn take_batch(&mut self) -> WriteBatch {
        let events = self.events.len().min(EVENTS_AT_ONCE);
        let calls = self.calls.len().min(CALLS_AT_ONCE);
        let is_last = events == self.events.len() && calls == self.calls.len();
        WriteBatch {
            begins: self.begins.drain(..).collect(),
            events: self.events.drain(..events).collect(),
            calls: self.calls.drain(..calls).collect(),
            // Records of a run precede its end.
            ends: if is_last {
                self.ends.drain(..).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// Puts back a failed batch, in front of newer records.
    pub(super) fn put_back(&mut self, batch: WriteBatch) {
        put_back(&mut self.begins, batch.begins);
        put_back(&mut self.events, batch.events);
        put_back(&mut self.calls, batch.calls);
        put_back(&mut self.ends, batch.ends);
        self.dropped += drop_oldest(&mut self.events, MAX_EVENTS);
        self.dropped += drop_oldest(&mut self.calls, MAX_CALLS);
    }

    /// Counts a record that cannot be written at all.
    pub(super) fn count_dropped(&mut self) {
        self.dropped += 1;
    }

    /// Returns the number of dropped calls and events.
    pub(super) fn dropped_count(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of calls and events that were dropped or are still queued.
    pub(super) fn unwritten_count(&self) -> u64 {
        self.dropped + (self.events.len() + self.calls.len()) as u64
    }
}

/// Drops the oldest records and returns their number.
fn drop_oldest<T>(queue: &mut VecDeque<T>, most: usize) -> u64 {
    let over = queue.len().saturating_sub(most);
    queue.drain(..over);
    over as u64
}

fn put_back<T>(queue: &mut VecDeque<T>, items: Vec<T>) {
    for item in items.into_iter().rev() {
        queue.push_front(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(queue: &mut WriteQueue, number: i64) {
        let run = RunId::new("r");
        let at = Timestamp::from_millis(number);
        let event = unstuck_core::event::RunResumed::unchanged("x", 1);
        queue.push_event(run, at, event.into());
    }

    #[test]
    fn oldest_records_are_dropped_and_counted() {
        let mut queue = WriteQueue::default();
        for number in 0..MAX_EVENTS as i64 + 5 {
            event(&mut queue, number);
        }
        assert_eq!(queue.dropped_count(), 5);
        let batch = queue.take_batch();
        assert_eq!(batch.events[0].at.millis(), 5);
        assert_eq!(batch.events.len(), EVENTS_AT_ONCE);
        queue.put_back(batch);
        assert_eq!(queue.take_batch().events[0].at.millis(), 5);
    }

    #[test]
    fn run_end_follows_all_earlier_records() {
        let mut queue = WriteQueue::default();
        for number in 0..EVENTS_AT_ONCE as i64 + 1 {
            event(&mut queue, number);
        }
        let end = RunFinished {
            outcome: unstuck_core::event::RunOutcome::Succeeded,
            exit_code: 0,
            reason: "x".into(),
            attempts: 0,
            retry_count: 0,
            recovery_level: None,
            cost_usd: None,
            duration_ms: 1,
        };
        queue.push_ends(vec![(RunId::new("r"), end)], Timestamp::from_millis(9));
        assert!(queue.take_batch().ends.is_empty());
        assert_eq!(queue.take_batch().ends.len(), 1);
        assert!(queue.take_batch().is_empty());
    }
}
