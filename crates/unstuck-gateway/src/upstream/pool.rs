//! The pool of idle connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hyper::client::conn::http2;
use hyper::http::uri::{Authority, Scheme};
use tokio::time::Instant;

use super::http1_conn::Http1Conn;
use super::request_body::RequestBody;

/// The time an unused connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval for closing stale connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15);

/// The scheme and authority that a connection leads to.
pub(super) type Origin = (Scheme, Authority);

/// A connection that carries many calls at a time.
pub(super) type Http2Conn = http2::SendRequest<RequestBody>;

/// The pool of idle connections.
#[derive(Default)]
pub(super) struct ConnectionPool(Mutex<IdleConnections>);

#[derive(Default)]
struct IdleConnections {
    http1: HashMap<Origin, Vec<Http1Conn>>,
    http2: HashMap<Origin, Http2Conn>,
    is_swept: bool,
}

impl ConnectionPool {
    /// Returns the most recently used connection that can carry another call.
    pub(super) fn take_http1(&self, place: &Origin) -> Option<Http1Conn> {
        let mut kept = self.lock();
        let lines = kept.http1.get_mut(place)?;
        while let Some(mut line) = lines.pop() {
            if line.is_free() && line.last_used.elapsed() < IDLE_TIMEOUT {
                return Some(line);
            }
        }
        None
    }

    /// Keeps a connection for the next call, if it can carry one.
    pub(super) fn put_http1(self: &Arc<Self>, place: Origin, mut line: Http1Conn) {
        if !line.is_free() {
            return;
        }
        line.last_used = Instant::now();
        let mut kept = self.lock();
        kept.http1.entry(place).or_default().push(line);
        if !std::mem::replace(&mut kept.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Returns the connection that carries many calls, if there is one.
    pub(super) fn get_http2(&self, place: &Origin) -> Option<Http2Conn> {
        let mut kept = self.lock();
        if kept.http2.get(place)?.is_closed() {
            kept.http2.remove(place);
        }
        kept.http2.get(place).cloned()
    }

    pub(super) fn put_http2(&self, place: Origin, trunk: Http2Conn) {
        self.lock().http2.insert(place, trunk);
    }

    /// Removes connections that are idle for long or closed by the other side; returns true if any are left.
    fn remove_stale(&self) -> bool {
        let mut kept = self.lock();
        kept.http1.retain(|_, lines| {
            lines.retain_mut(|line| line.last_used.elapsed() < IDLE_TIMEOUT && line.is_free());
            !lines.is_empty()
        });
        kept.is_swept = !kept.http1.is_empty();
        kept.is_swept
    }

    fn lock(&self) -> MutexGuard<'_, IdleConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes stale connections for as long as there are any connections.
async fn sweep(pool: Weak<ConnectionPool>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let is_any = pool.upgrade().is_some_and(|pool| pool.remove_stale());
        if !is_any {
            return;
        }
    }
}
