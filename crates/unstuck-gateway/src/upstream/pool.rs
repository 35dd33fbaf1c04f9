//! Connections that are kept for the next call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hyper::client::conn::http2;
use hyper::http::uri::{Authority, Scheme};
use tokio::time::Instant;

use super::body::Outgoing;
use super::line::Line;

/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(60);
/// How often is looked for connections that are kept for nothing.
const SWEEP: Duration = Duration::from_secs(15);

/// Whom a connection leads to.
pub(super) type Place = (Scheme, Authority);

/// A connection that carries many calls at a time.
pub(super) type Trunk = http2::SendRequest<Outgoing>;

/// Connections that are kept for the next call.
#[derive(Default)]
pub(super) struct Pool(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    lines: HashMap<Place, Vec<Line>>,
    trunks: HashMap<Place, Trunk>,
    is_swept: bool,
}

impl Pool {
    /// The connection that was used last and can carry another call.
    pub(super) fn line(&self, place: &Place) -> Option<Line> {
        let mut kept = self.kept();
        let lines = kept.lines.get_mut(place)?;
        while let Some(mut line) = lines.pop() {
            if line.is_free() && line.used.elapsed() < IDLE {
                return Some(line);
            }
        }
        None
    }

    /// Keeps a connection for the next call, if it can carry one.
    pub(super) fn keep(self: &Arc<Self>, place: Place, mut line: Line) {
        if !line.is_free() {
            return;
        }
        line.used = Instant::now();
        let mut kept = self.kept();
        kept.lines.entry(place).or_default().push(line);
        if !std::mem::replace(&mut kept.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// The connection that carries many calls, where there is one.
    pub(super) fn trunk(&self, place: &Place) -> Option<Trunk> {
        let mut kept = self.kept();
        if kept.trunks.get(place)?.is_closed() {
            kept.trunks.remove(place);
        }
        kept.trunks.get(place).cloned()
    }

    pub(super) fn keep_trunk(&self, place: Place, trunk: Trunk) {
        self.kept().trunks.insert(place, trunk);
    }

    /// Lets go what nobody has used for long or what the other side has closed; whether anything is left.
    fn let_go(&self) -> bool {
        let mut kept = self.kept();
        kept.lines.retain(|_, lines| {
            lines.retain_mut(|line| line.used.elapsed() < IDLE && line.is_free());
            !lines.is_empty()
        });
        kept.is_swept = !kept.lines.is_empty();
        kept.is_swept
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of connections that are kept for nothing, for as long as there are any.
async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let is_any = pool.upgrade().is_some_and(|pool| pool.let_go());
        if !is_any {
            return;
        }
    }
}
