//! An HTTP/1.1 connection, driven by its user.
//!
//! A connection in its own task would hand over every piece of a response between tasks. This one is polled where its
//! response is read, so that all received data is taken at once.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::{Request, Response};
use hyper_util::client::legacy::connect::Connection as _;
use tokio::time::Instant;

use super::connector::UpstreamStream;
use super::request_body::RequestBody;
use crate::coalescing_waker::CoalescingWaker;

/// An HTTP/1.1 connection for one call at a time.
pub(super) struct Http1Conn {
    sender: SendRequest<RequestBody>,
    connection: Pin<Box<Connection<UpstreamStream, RequestBody>>>,
    is_over: bool,
    /// True if it leads to a proxy that reads the requests.
    is_proxied: bool,
    waker: Arc<CoalescingWaker>,
    /// The time of the last call.
    pub(super) last_used: Instant,
}

impl Http1Conn {
    pub(super) async fn open(stream: UpstreamStream) -> hyper::Result<Self> {
        let is_proxied = stream.connected().is_proxied();
        let (sender, connection) = http1::handshake(stream).await?;
        Ok(Self {
            sender,
            connection: Box::pin(connection),
            is_over: false,
            is_proxied,
            waker: Arc::default(),
            last_used: Instant::now(),
        })
    }

    /// Sends a request and waits for the response head. Returns a request that was not sent.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        let mut sending = pin!(self.sender.try_send_request(request));
        let (connection, is_over) = (&mut self.connection, &mut self.is_over);
        poll_fn(|context| {
            self.waker.poll(context, |context| {
                if let Poll::Ready(sent) = sending.as_mut().poll(context) {
                    return Poll::Ready(sent);
                }
                poll_connection(connection, is_over, context);
                sending.as_mut().poll(context)
            })
        })
        .await
    }

    /// Polls the next frame of a response. Connection errors are reported by the response.
    pub(super) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let (connection, is_over) = (&mut self.connection, &mut self.is_over);
        self.waker.poll(context, |context| {
            if let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) {
                return Poll::Ready(frame);
            }
            poll_connection(connection, is_over, context);
            Pin::new(&mut *body).poll_frame(context)
        })
    }

    /// Returns true if it leads to a proxy, which needs absolute URLs.
    pub(super) fn is_proxied(&self) -> bool {
        self.is_proxied
    }

    /// Returns true if it can carry another call.
    pub(super) fn is_free(&mut self) -> bool {
        let context = &mut Context::from_waker(Waker::noop());
        poll_connection(&mut self.connection, &mut self.is_over, context);
        !self.is_over && self.sender.is_ready()
    }
}

/// Writes pending data and reads received data.
fn poll_connection(
    connection: &mut Pin<Box<Connection<UpstreamStream, RequestBody>>>,
    is_over: &mut bool,
    context: &mut Context<'_>,
) {
    if !*is_over {
        *is_over = connection.as_mut().poll(context).is_ready();
    }
}
