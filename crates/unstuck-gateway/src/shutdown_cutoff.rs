//! Interrupts calls in progress at the shutdown of a gateway, so that they can report it to their clients.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// Interrupts the calls in progress of a gateway at its shutdown.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallCutoff(Arc<CallCutoffState>);

#[derive(Debug, Default)]
struct CallCutoffState {
    is_over: AtomicBool,
    notify: Arc<Notify>,
}

impl CallCutoff {
    /// Cuts off calls in progress.
    pub(crate) fn cut_off(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Returns true once calls are cut off.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::SeqCst)
    }

    /// Returns a future that completes on cut-off.
    pub(crate) fn signal(&self) -> CutoffSignal {
        CutoffSignal {
            notified: Box::pin(Arc::clone(&self.0.notify).notified_owned()),
            shutdown: self.clone(),
            waker: None,
        }
    }
}

/// A future that completes when calls are cut off.
#[derive(Debug)]
pub(crate) struct CutoffSignal {
    notified: Pin<Box<OwnedNotified>>,
    shutdown: CallCutoff,
    /// The waker to notify. All calls share the listener list, so it is not touched with every piece of a stream.
    waker: Option<Waker>,
}

impl Future for CutoffSignal {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let hearing = self.get_mut();
        if hearing.shutdown.is_over() {
            return Poll::Ready(());
        }
        let waker = context.waker();
        let is_known = hearing.waker.as_ref();
        if is_known.is_some_and(|known| known.will_wake(waker)) {
            return Poll::Pending;
        }
        hearing.waker = Some(waker.clone());
        hearing.notified.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_listener_gets_the_shutdown_signal() {
        let ending = CallCutoff::default();
        let (early, unpolled) = (ending.signal(), ending.signal());
        let waiting = tokio::spawn(early);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished() && !ending.is_over());
        ending.cut_off();
        waiting.await.unwrap();
        unpolled.await;
        ending.signal().await;
    }
}
