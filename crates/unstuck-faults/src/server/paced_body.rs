//! Response bodies: complete, paced, cut in the middle, or silent.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::in_flight::InFlightRequest;
use super::raw_connection::{RawConnection, RawConnectionFault};

/// Time for written data to be sent before the connection breaks.
const BEFORE_CUT: Duration = Duration::from_millis(20);

/// The end of a body after its last piece.
#[derive(Debug)]
pub(super) enum BodyEnd {
    /// Ends properly.
    Complete,
    /// Closes the connection.
    Cut,
    /// Resets the connection.
    Reset(Arc<RawConnection>),
    /// Stays silent forever, except for pings.
    Silence(Option<Pings>),
}

/// Keep-alive pings while no other data is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pings {
    pub(super) every: Duration,
    pub(super) frame: &'static str,
}

/// A piece of a body and the delay before it.
#[derive(Debug)]
pub(super) struct BodyPiece {
    pub(super) bytes: Bytes,
    pub(super) wait: Duration,
    pub(super) pings: Option<Pings>,
}

/// A body that is sent piece by piece.
#[derive(Debug)]
pub(super) struct PacedBody {
    pieces: VecDeque<BodyPiece>,
    end: BodyEnd,
    pause: Option<BodyPause>,
    ended: bool,
    in_flight: Option<InFlightRequest>,
}

/// A delay in progress.
#[derive(Debug)]
struct BodyPause {
    /// End of the delay; `None` means never.
    until: Option<Instant>,
    pings: Option<Pings>,
    timer: Pin<Box<Sleep>>,
}

impl<B: Into<Bytes>> From<B> for BodyPiece {
    fn from(bytes: B) -> Self {
        Self {
            bytes: bytes.into(),
            wait: Duration::ZERO,
            pings: None,
        }
    }
}

impl PacedBody {
    pub(super) fn new(
        pieces: impl IntoIterator<Item = impl Into<BodyPiece>>,
        end: BodyEnd,
    ) -> Self {
        Self {
            pieces: pieces.into_iter().map(Into::into).collect(),
            end,
            pause: None,
            ended: false,
            in_flight: None,
        }
    }

    /// Keeps the request in flight until its body ends.
    pub(super) fn with_in_flight(mut self, flight: InFlightRequest) -> Self {
        self.in_flight = Some(flight);
        self
    }

    fn poll_pause(
        &mut self,
        wait: Option<Duration>,
        pings: Option<Pings>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Bytes>> {
        let pause = self
            .pause
            .get_or_insert_with(|| BodyPause::new(wait, pings));
        match pause.poll(context) {
            Poll::Ready(None) => {
                self.pause = None;
                Poll::Ready(None)
            }
            other => other,
        }
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<std::io::Result<Bytes>>> {
        match &self.end {
            BodyEnd::Complete => {}
            BodyEnd::Silence(pings) => {
                let pings = *pings;
                return match self.poll_pause(None, pings, context) {
                    Poll::Ready(ping) => Poll::Ready(ping.map(Ok)),
                    Poll::Pending => Poll::Pending,
                };
            }
            BodyEnd::Cut | BodyEnd::Reset(_) => {
                if self
                    .poll_pause(Some(BEFORE_CUT), None, context)
                    .is_pending()
                {
                    return Poll::Pending;
                }
                if let BodyEnd::Reset(line) = &self.end {
                    line.take_over(RawConnectionFault::Reset);
                }
                self.ended = true;
                return Poll::Ready(Some(Err(cut_error())));
            }
        }
        self.ended = true;
        Poll::Ready(None)
    }
}

impl BodyPause {
    fn new(wait: Option<Duration>, pings: Option<Pings>) -> Self {
        let now = Instant::now();
        let until = wait.map(|wait| now + wait);
        let mut pause = Self {
            until,
            pings,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
        };
        pause.arm(now);
        pause
    }

    /// Sets the timer to the next ping or the end of the delay, whichever comes first.
    fn arm(&mut self, now: Instant) {
        let ping = self.pings.map(|pings| now + pings.every);
        let next = [ping, self.until].into_iter().flatten().min();
        // No request waits for a day.
        let next = next.unwrap_or_else(|| now + Duration::from_secs(86_400));
        self.timer.as_mut().reset(next);
    }

    /// Returns a ping that is due, or `None` at the end of the delay.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            if self.until.is_some_and(|until| now >= until) {
                return Poll::Ready(None);
            }
            self.arm(now);
            if let Some(pings) = self.pings {
                return Poll::Ready(Some(Bytes::from_static(pings.frame.as_bytes())));
            }
        }
    }
}

fn cut_error() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::ConnectionAborted, "cut by the script")
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let framed = |bytes: Bytes| Poll::Ready(Some(Ok(Frame::data(bytes))));
        let Some(next) = self.pieces.front() else {
            return self
                .poll_end(context)
                .map(|end| end.map(|end| end.map(Frame::data)));
        };
        let (wait, pings) = (next.wait, next.pings);
        if !wait.is_zero() {
            match self.poll_pause(Some(wait), pings, context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(ping)) => return framed(ping),
                Poll::Ready(None) => {}
            }
        }
        match self.pieces.pop_front() {
            Some(piece) => framed(piece.bytes),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && matches!(self.end, BodyEnd::Complete)
    }

    fn size_hint(&self) -> SizeHint {
        let lengths = self.pieces.iter().map(|piece| piece.bytes.len());
        match (&self.end, u64::try_from(lengths.sum::<usize>())) {
            (BodyEnd::Complete, Ok(length)) if self.pieces.len() <= 1 => {
                SizeHint::with_exact(length)
            }
            _ => SizeHint::default(),
        }
    }
}

impl Drop for PacedBody {
    fn drop(&mut self) {
        let is_whole = self.ended || self.is_end_stream();
        if let (false, Some(flight)) = (is_whole, &self.in_flight) {
            flight.mark_abandoned();
        }
    }
}
