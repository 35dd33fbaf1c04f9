//! A queue that is fair between sessions and first-in, first-out within one.
//!
//! Fair queueing by virtual time: each item is placed behind the waiting items of its own session, but never before the
//! current virtual time. A session with many calls queues behind itself, not in front of the others. Virtual time
//! advances with each served item, more slowly with more waiting sessions, so that new sessions cannot overtake forever
//! either.

use std::collections::{BTreeMap, HashMap};

/// Identifies a waiting item, for removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueItemId(u64);

/// Waiting items, by session.
///
/// ```
/// use unstuck_core::admission::FairQueue;
///
/// let mut queue = FairQueue::default();
/// for call in 1..=3 {
///     queue.push("busy", 1, format!("busy {call}"));
/// }
/// queue.push("small", 1, "small 1".to_owned());
/// let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
/// assert_eq!(order, ["busy 1", "small 1", "busy 2", "busy 3"]);
/// ```
#[derive(Debug, Clone)]
pub struct FairQueue<T> {
    waiting: BTreeMap<QueueKey, QueuedItem<T>>,
    starts: HashMap<u64, u64>,
    sessions: HashMap<String, SessionShare>,
    /// The current virtual time.
    virtual_time: u64,
    pushed: u64,
    /// The number of sessions with waiting items.
    active: u64,
    /// The number of known sessions at which idle ones are forgotten.
    forget_at: usize,
}

/// The position of an item: its start in virtual time, then its arrival order.
type QueueKey = (u64, u64);

#[derive(Debug, Clone)]
struct QueuedItem<T> {
    session: String,
    cost: u64,
    finish: u64,
    item: T,
}

#[derive(Debug, Clone, Default)]
struct SessionShare {
    /// The virtual time at which the last of its items finishes.
    finish: u64,
    waiting: usize,
}

/// A cost of 1 in virtual time; large enough to be divided among many sessions.
const UNIT: u64 = 1 << 16;
/// The minimum number of sessions at which idle ones are forgotten.
const FORGET_AT: usize = 64;

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            starts: HashMap::new(),
            sessions: HashMap::new(),
            virtual_time: 0,
            pushed: 0,
            active: 0,
            forget_at: FORGET_AT,
        }
    }
}

impl<T> FairQueue<T> {
    /// Adds an item of a session; a higher cost uses up more of the session's share. Zero cost counts as 1.
    pub fn push(&mut self, session: &str, cost: u64, item: T) -> QueueItemId {
        self.pushed += 1;
        let number = self.pushed;
        let known = match self.sessions.get_mut(session) {
            Some(known) => known,
            None => self.sessions.entry(session.to_owned()).or_default(),
        };
        let start = known.finish.max(self.virtual_time);
        let cost = cost.max(1).saturating_mul(UNIT);
        known.finish = start.saturating_add(cost);
        self.active += u64::from(known.waiting == 0);
        known.waiting += 1;
        let entry = QueuedItem {
            session: session.to_owned(),
            cost,
            finish: known.finish,
            item,
        };
        self.starts.insert(number, start);
        self.waiting.insert((start, number), entry);
        QueueItemId(number)
    }

    /// Returns the next item without removing it.
    pub fn peek(&self) -> Option<&T> {
        self.waiting.values().next().map(|entry| &entry.item)
    }

    /// Removes the next item.
    pub fn pop(&mut self) -> Option<T> {
        let ((start, number), entry) = self.waiting.pop_first()?;
        self.virtual_time = self.virtual_time.max(start);
        let step = entry.cost / self.active.max(1);
        self.virtual_time = self.virtual_time.saturating_add(step.max(1));
        self.starts.remove(&number);
        self.on_item_left(&entry.session);
        Some(entry.item)
    }

    /// Removes an item that is no longer needed; none if it is already gone.
    pub fn remove(&mut self, ticket: QueueItemId) -> Option<T> {
        let start = self.starts.remove(&ticket.0)?;
        let entry = self.waiting.remove(&(start, ticket.0))?;
        // Only the session's newest item gives its share back; earlier ones have already delayed those behind them.
        if let Some(known) = self.sessions.get_mut(&entry.session)
            && known.finish == entry.finish
        {
            known.finish = start;
        }
        self.on_item_left(&entry.session);
        Some(entry.item)
    }

    /// The number of waiting items.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if no item waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn on_item_left(&mut self, session: &str) {
        if self.waiting.is_empty() {
            self.sessions.clear();
            (self.virtual_time, self.active) = (0, 0);
            return;
        }
        if let Some(known) = self.sessions.get_mut(session) {
            known.waiting = known.waiting.saturating_sub(1);
            self.active -= u64::from(known.waiting == 0);
        }
        if self.sessions.len() > self.forget_at {
            let present = self.virtual_time;
            self.sessions
                .retain(|_, known| known.waiting > 0 || known.finish > present);
            self.forget_at = (2 * self.sessions.len()).max(FORGET_AT);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn busy_session_does_not_starve_the_others() {
        let mut queue = FairQueue::default();
        for call in 0..200 {
            queue.push("busy", 1, ("busy", call));
        }
        for _ in 0..50 {
            queue.pop();
        }
        for call in 0..10 {
            queue.push(&format!("small {call}"), 1, ("small", call));
        }
        let next: Vec<_> = (0..11).filter_map(|_| queue.pop()).collect();
        let small = next.iter().filter(|(session, _)| *session == "small");
        assert_eq!(small.count(), 10, "{next:?}");
    }

    #[test]
    fn new_sessions_cannot_overtake_forever() {
        let mut queue = FairQueue::default();
        for _ in 0..5 {
            queue.push("old", 1, "old");
        }
        let mut served = Vec::new();
        for session in 0..50 {
            queue.push(&session.to_string(), 1, "new");
            served.extend(queue.pop());
        }
        let old = served.iter().filter(|session| **session == "old");
        assert_eq!(old.count(), 5, "{served:?}");
    }

    #[test]
    fn expensive_calls_use_more_of_the_share() {
        let mut queue = FairQueue::default();
        for call in 0..30 {
            queue.push("dear", 3, ("dear", call));
            queue.push("cheap", 1, ("cheap", call));
        }
        let next: Vec<_> = (0..20).filter_map(|_| queue.pop()).collect();
        let dear = next.iter().filter(|(session, _)| *session == "dear");
        assert_eq!(dear.count(), 5);
    }

    #[test]
    fn removed_item_is_not_served() {
        let mut queue = FairQueue::default();
        let first = queue.push("a", 1, 1);
        queue.push("a", 1, 2);
        assert_eq!(queue.remove(first), Some(1));
        assert_eq!(queue.remove(first), None);
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.pop(), Some(2));
    }

    #[test]
    fn idle_sessions_are_forgotten() {
        let mut queue = FairQueue::default();
        for session in 0..10_000 {
            queue.push(&session.to_string(), 1, session);
            if session > 10 {
                queue.pop();
            }
        }
        assert!(queue.sessions.len() < 200, "{}", queue.sessions.len());
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(u8, u64),
        Pop,
        Remove(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0_u8..5, 0_u64..9).prop_map(|(session, cost)| Step::Push(session, cost)),
            2 => Just(Step::Pop),
            1 => (0_usize..50).prop_map(Step::Remove),
        ];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_each_session_is_served_in_order(steps in steps()) {
            let mut queue = FairQueue::default();
            let (mut tickets, mut out) = (Vec::new(), Vec::new());
            for step in steps {
                match step {
                    Step::Push(session, cost) => {
                        let item = (session, tickets.len());
                        tickets.push(queue.push(&session.to_string(), cost, item));
                    }
                    Step::Pop => out.extend(queue.pop().map(|item| (item, false))),
                    Step::Remove(at) => {
                        let ticket = tickets.get(at).copied();
                        out.extend(ticket.and_then(|at| queue.remove(at)).map(|item| (item, true)));
                    }
                }
            }
            prop_assert_eq!(out.len() + queue.len(), tickets.len());
            out.extend(std::iter::from_fn(|| queue.pop()).map(|item| (item, false)));
            for session in 0_u8..5 {
                let served = out.iter().filter(|((of, _), removed)| *of == session && !removed);
                prop_assert!(served.map(|((_, number), _)| *number).is_sorted());
            }
            let mut all: Vec<_> = out.iter().map(|((_, number), _)| *number).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..tickets.len()).collect::<Vec<_>>());
        }
    }
}
