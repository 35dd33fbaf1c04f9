//! Passes a stream on: whole frames, as soon as they are there, and a proper error where it breaks.
//!
//! hyper hands over one chunk a poll and writes one chunk at a time. What is already there is merged into one, and
//! nothing is ever waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame as BodyFrame};
use tokio::time::{Instant, Sleep};
use unstuck_core::agent::StreamErrorSignal;

use super::call_recorder::CallRecorder;
use super::upstream_attempt::{MALFORMED, NO_END, StreamStarted};
use super::upstream_error::{STOPPED, UpstreamError};
use crate::fallback::BodyError;
use crate::protocol::{FrameKind, FrameSplitter, Protocol, ResponseReader, error_event};
use crate::shutdown::ShutdownSignal;
use crate::upstream::UpstreamBody;

/// So much is merged at most, so that nothing waits for long behind what keeps coming.
const MAX_MERGED: usize = 16 << 10;
/// A frame that has not ended after so many bytes never will. No more is kept back after one that could not be read.
const MAX_FRAME: usize = 32 << 20;
/// So often in a row the runtime is given the chance to bring more of what is already there, where that comes from another
/// task.
const MAX_POLLS: u8 = 2;

/// So long what was passed on is given to go out before the connection is ended.
const FLUSH_GRACE: Duration = Duration::from_millis(50);

/// A stream that is passed on.
pub(crate) struct StreamRelay {
    protocol: Protocol,
    body: UpstreamBody,
    frames: FrameSplitter,
    reader: ResponseReader,
    /// What can be passed on now.
    ready: BytesMut,
    /// What has come since a frame that could not be read: passed on once it is known that nothing is missing.
    unverified: Option<BytesMut>,
    looks: u8,
    stall: Pin<Box<Sleep>>,
    /// When the last came that was more than a sign of life.
    last_content: Instant,
    stall_timeout: Duration,
    state: RelayState,
    /// How the client is told that it breaks.
    stream_error: StreamErrorSignal,
    /// After this the connection is ended, and what was passed on before has gone out.
    severed: Option<Pin<Box<Sleep>>>,
    shutdown: ShutdownSignal,
    recorder: Box<CallRecorder>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RelayState {
    /// More may come.
    Open,
    /// Nothing more comes; what is ready is still to be passed on.
    Finished,
}

impl StreamRelay {
    /// Goes on where the first content has been read.
    pub(crate) fn new(
        opened: StreamStarted,
        protocol: Protocol,
        patience: Duration,
        stream_error: StreamErrorSignal,
        account: Box<CallRecorder>,
    ) -> Self {
        let mut relay = Self {
            protocol,
            body: opened.body,
            frames: opened.frames,
            reader: opened.reader,
            ready: opened.held,
            unverified: None,
            looks: 0,
            stall: Box::pin(tokio::time::sleep(patience)),
            last_content: Instant::now(),
            stall_timeout: patience,
            state: RelayState::Open,
            stream_error,
            severed: None,
            shutdown: account.state.shutdown.signal(),
            recorder: account,
        };
        relay.take_frames();
        if opened.is_over {
            relay.on_upstream_end();
        }
        relay
    }

    /// Reads what has arrived. What comes after a frame that cannot be read is kept back until the end shows whether anything
    /// is missing.
    fn take_frames(&mut self) {
        let mut is_alive = false;
        while self.state == RelayState::Open {
            let Some(bytes) = self.frames.next() else {
                break;
            };
            match self.reader.read_frame(&bytes) {
                FrameKind::Ping => self.ready.extend_from_slice(&bytes),
                FrameKind::Lifecycle | FrameKind::Content | FrameKind::End => {
                    let to = self.unverified.as_mut().unwrap_or(&mut self.ready);
                    to.extend_from_slice(&bytes);
                    is_alive = true;
                }
                FrameKind::Error => {
                    self.ready.extend_from_slice(&bytes);
                    let error = String::from_utf8_lossy(&bytes).into_owned();
                    let head = self.recorder.response_head();
                    let broken = UpstreamError::in_stream(self.protocol, head, &error);
                    self.break_off(&broken, false);
                }
                FrameKind::Malformed => {
                    self.unverified.get_or_insert_default();
                }
            }
        }
        if is_alive {
            self.last_content = Instant::now();
        }
    }

    /// The upstream has nothing more to say.
    fn on_upstream_end(&mut self) {
        if self.state == RelayState::Finished {
            return;
        }
        // The blank line after the last frame is often left out.
        let rest = self.frames.remainder().trim_ascii();
        if !rest.is_empty() && !self.reader.is_complete() {
            self.reader.read_frame(rest);
        }
        let doubtful = self.unverified.take();
        if doubtful.is_some() && !(self.reader.is_finished() && self.reader.is_gapless()) {
            let broken = UpstreamError::malformed(self.protocol, MALFORMED);
            self.break_off(&broken, true);
        } else if self.reader.is_finished() {
            self.ready.extend_from_slice(&doubtful.unwrap_or_default());
            let rest = self.frames.remainder();
            self.ready.extend_from_slice(rest);
            self.state = RelayState::Finished;
            self.recorder.add_sent_bytes(self.ready.len());
            self.recorder.finish(&self.reader);
        } else {
            let broken = UpstreamError::malformed(self.protocol, NO_END);
            self.break_off(&broken, true);
        }
    }

    /// The gateway ends before the stream does.
    fn cut_off(&mut self) {
        if self.state == RelayState::Open {
            let broken = UpstreamError::malformed(self.protocol, STOPPED);
            self.break_off(&broken, true);
        }
    }

    /// Ends the stream with an error that the client understands.
    fn break_off(&mut self, broken: &UpstreamError, tell: bool) {
        self.recorder.add_sent_bytes(self.ready.len());
        let trouble = self.recorder.break_off(broken, &self.reader);
        if self.stream_error == StreamErrorSignal::Disconnect {
            self.severed = Some(Box::pin(tokio::time::sleep(FLUSH_GRACE)));
        } else if tell {
            let event = error_event(&self.reader, &trouble.details());
            self.ready.extend_from_slice(&event);
        }
        self.state = RelayState::Finished;
    }

    fn poll_ready_bytes(&mut self) -> Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
        self.looks = 0;
        let bytes = self.ready.split().freeze();
        // What is passed on at the end was counted when the account was closed.
        if self.state == RelayState::Open {
            self.recorder.add_sent_bytes(bytes.len());
        }
        Poll::Ready(Some(Ok(BodyFrame::data(bytes))))
    }
}

impl Drop for StreamRelay {
    /// The client went away, or the gateway has ended: what was used so far counts.
    fn drop(&mut self) {
        if self.state == RelayState::Open {
            self.recorder.abandon(&self.reader);
        }
    }
}

impl Body for StreamRelay {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
        let relay = self.get_mut();
        if Pin::new(&mut relay.shutdown).poll(context).is_ready() {
            relay.cut_off();
        }
        loop {
            if relay.state == RelayState::Finished {
                if !relay.ready.is_empty() {
                    return relay.poll_ready_bytes();
                }
                let Some(severed) = &mut relay.severed else {
                    return Poll::Ready(None);
                };
                let cut = || Some(Err("the stream broke".into()));
                return severed.as_mut().poll(context).map(|()| cut());
            }
            if relay.ready.len() >= MAX_MERGED {
                return relay.poll_ready_bytes();
            }
            match Pin::new(&mut relay.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        relay.looks = 0;
                        relay.frames.push(data);
                        relay.take_frames();
                        let doubtful = relay.unverified.as_ref().map_or(0, BytesMut::len);
                        if relay.frames.remainder().len() + doubtful > MAX_FRAME {
                            let broken =
                                UpstreamError::malformed(relay.protocol, "a frame without end");
                            relay.break_off(&broken, true);
                        }
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    let doing = "connection reset in the middle of the stream";
                    let broken = UpstreamError::transport(relay.protocol, doing, &error);
                    relay.break_off(&broken, true);
                }
                Poll::Ready(None) => relay.on_upstream_end(),
                Poll::Pending if !relay.ready.is_empty() => {
                    if relay.body.is_read_here() || relay.looks >= MAX_POLLS {
                        return relay.poll_ready_bytes();
                    }
                    relay.looks += 1;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => {
                    if relay.stall.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    let until = relay.last_content + relay.stall_timeout;
                    if until > Instant::now() {
                        relay.stall.as_mut().reset(until);
                        continue;
                    }
                    let what = "the stream stalled: nothing more";
                    let broken =
                        UpstreamError::timed_out(relay.protocol, what, relay.stall_timeout);
                    relay.break_off(&broken, true);
                }
            }
        }
    }
}
