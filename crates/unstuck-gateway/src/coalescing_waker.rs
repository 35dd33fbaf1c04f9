//! A waker for parts of one task that wake each other: they are polled again at once.
//!
//! A connection and its response, or a request and its reader, wake each other all the time. The same task polls both
//! and would be scheduled again each time, waking another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

const IDLE: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// The maximum number of immediate polls in a row.
const MAX_REPOLLS: u8 = 4;

/// A waker that stands for the polling task.
#[derive(Default)]
pub(crate) struct CoalescingWaker {
    state: AtomicU8,
    task: AtomicWaker,
}

impl CoalescingWaker {
    /// Polls until the result is ready or no part was woken.
    pub(crate) fn poll<T>(
        self: &Arc<Self>,
        context: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.task.register(context.waker());
        let waker = Waker::from(Arc::clone(self));
        let mut inner = Context::from_waker(&waker);
        for _ in 0..MAX_REPOLLS {
            self.state.store(POLLED, Ordering::Release);
            let polled = poll(&mut inner);
            let was = self.state.swap(IDLE, Ordering::AcqRel);
            if polled.is_ready() || was != WOKEN {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for CoalescingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let is_polled = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state != IDLE).then_some(WOKEN)
            });
        if is_polled.is_err() {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn polled(wakes: usize) -> (Poll<usize>, usize, Arc<CoalescingWaker>, Arc<Counting>) {
        let (quiet, task) = (
            Arc::new(CoalescingWaker::default()),
            Arc::new(Counting::default()),
        );
        let waker = Waker::from(Arc::clone(&task));
        let mut polls = 0;
        let polled = quiet.poll(&mut Context::from_waker(&waker), |context| {
            polls += 1;
            if polls <= wakes {
                context.waker().wake_by_ref();
            }
            Poll::<usize>::Pending
        });
        (polled, polls, quiet, task)
    }

    #[test]
    fn self_wake_repolls_without_waking_the_task() {
        let (polled, polls, _, task) = polled(2);
        assert_eq!((polled, polls), (Poll::Pending, 3));
        assert_eq!(task.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn endless_self_wakes_yield_to_other_tasks() {
        let (_, polls, _, task) = polled(usize::MAX);
        assert_eq!(
            (polls, task.0.load(Ordering::Relaxed)),
            (MAX_REPOLLS.into(), 1)
        );
    }

    #[test]
    fn later_wake_wakes_the_task() {
        let (_, _, quiet, task) = polled(0);
        Waker::from(quiet).wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
    }
}
