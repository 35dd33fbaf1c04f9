//! A connection that carries one call at a time, driven by whoever uses it.
//!
//! A connection in a task of its own would hand over every piece of an answer from task to task. This one is polled
//! where its answer is read, so that all that has arrived is taken at once.

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

/// A connection that carries one call at a time.
pub(super) struct Http1Conn {
    sender: SendRequest<RequestBody>,
    connection: Pin<Box<Connection<UpstreamStream, RequestBody>>>,
    is_over: bool,
    /// Whether it leads to a proxy that reads the requests.
    is_proxied: bool,
    waker: Arc<CoalescingWaker>,
    /// When it last carried a call.
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

    /// Sends a request, and waits for the head of its answer. One that was not sent is given back.
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

    /// Reads on in an answer that it brings. How it ends is told by the answer.
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

    /// Whether it leads to a proxy, to which requests name the whole address.
    pub(super) fn is_proxied(&self) -> bool {
        self.is_proxied
    }

    /// Whether it can carry another call.
    pub(super) fn is_free(&mut self) -> bool {
        let context = &mut Context::from_waker(Waker::noop());
        poll_connection(&mut self.connection, &mut self.is_over, context);
        !self.is_over && self.sender.is_ready()
    }
}

/// Writes what is to be sent, and reads what has arrived.
fn poll_connection(
    connection: &mut Pin<Box<Connection<UpstreamStream, RequestBody>>>,
    is_over: &mut bool,
    context: &mut Context<'_>,
) {
    if !*is_over {
        *is_over = connection.as_mut().poll(context).is_ready();
    }
}
