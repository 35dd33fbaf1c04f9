//! Response bodies from upstreams.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::http1_conn::Http1Conn;
use super::pool::{ConnectionPool, Origin};

/// A response body from an upstream. Its connection is pooled once the body is complete, and closed if the rest is
/// dropped.
pub(crate) struct UpstreamResponseBody {
    body: Incoming,
    line: Option<(Http1Conn, Origin, Arc<ConnectionPool>)>,
}

impl UpstreamResponseBody {
    /// Creates a body on a connection of its own.
    pub(super) fn over_http1(
        body: Incoming,
        line: Http1Conn,
        place: Origin,
        pool: Arc<ConnectionPool>,
    ) -> Self {
        Self {
            body,
            line: Some((line, place, pool)),
        }
    }

    /// Creates a body on a connection driven by its own task.
    pub(super) fn over_http2(body: Incoming) -> Self {
        Self { body, line: None }
    }

    /// Returns true if all received data is available at once. Otherwise some may be on its way from another task.
    pub(crate) fn is_read_here(&self) -> bool {
        self.line.is_some()
    }

    fn return_connection(&mut self) {
        if let Some((line, place, pool)) = self.line.take() {
            pool.put_http1(place, line);
        }
    }
}

impl Body for UpstreamResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let polled = match &mut this.line {
            Some((line, ..)) => line.poll_frame(&mut this.body, context),
            None => Pin::new(&mut this.body).poll_frame(context),
        };
        if let Poll::Ready(None) = polled {
            this.return_connection();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for UpstreamResponseBody {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.return_connection();
        }
    }
}
