//! Passes a stream on: whole frames, as soon as they arrive, and a proper error where it breaks.
//!
//! hyper returns one chunk per poll and writes one chunk at a time. Chunks that have already arrived are merged,
//! without waiting for more.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame as BodyFrame};
use tokio::time::{Instant, Sleep};
use unstuck_core::agent::BrokenStreamSignal;

use super::call_recorder::CallRecorder;
use super::upstream_attempt::{MALFORMED, NO_END, StartedStream};
use super::upstream_error::{STOPPED, UpstreamError};
use crate::non_llm_request_handler::BodyError;
use crate::protocol::{FrameKind, FrameSplitter, Protocol, ResponseReader, error_event};
use crate::shutdown_cutoff::CutoffSignal;
use crate::upstream::UpstreamResponseBody;

/// The maximum size of merged chunks, so that a continuous stream is not delayed.
const MAX_MERGED: usize = 16 << 10;
/// The maximum size of a frame; also the maximum held back after an unreadable frame.
const MAX_FRAME: usize = 32 << 20;
/// The maximum number of consecutive yields to let the runtime deliver what another task has already received.
const MAX_POLLS: u8 = 2;

/// The time for sent data to go out before the connection is closed.
const FLUSH_GRACE: Duration = Duration::from_millis(50);

/// A stream that is passed on.
pub(crate) struct StreamRelay {
    protocol: Protocol,
    body: UpstreamResponseBody,
    frames: FrameSplitter,
    reader: ResponseReader,
    /// The data that can be passed on now.
    ready: BytesMut,
    /// The data after an unreadable frame; passed on once it is known that nothing is missing.
    unverified: Option<BytesMut>,
    looks: u8,
    stall: Pin<Box<Sleep>>,
    /// The time of the last data other than keep-alive bytes.
    last_content: Instant,
    stall_timeout: Duration,
    state: RelayState,
    /// The way to signal a broken stream to the client.
    stream_error: BrokenStreamSignal,
    /// The delay before the connection is closed, so that earlier data goes out.
    severed: Option<Pin<Box<Sleep>>>,
    shutdown: CutoffSignal,
    recorder: Box<CallRecorder>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RelayState {
    /// More data may come.
    Open,
    /// No more data comes; what is ready is still to be passed on.
    Finished,
}

impl StreamRelay {
    /// Continues a stream whose first content has been read.
    pub(crate) fn new(
        opened: StartedStream,
        protocol: Protocol,
        patience: Duration,
        stream_error: BrokenStreamSignal,
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

    /// Reads the frames that have arrived. Data after an unreadable frame is held back until the end shows whether
    /// anything is missing.
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

    /// Handles the end of the upstream's stream.
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

    /// Ends the stream because the gateway stops.
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
        if self.stream_error == BrokenStreamSignal::Disconnect {
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
        // Data passed on at the end was counted when the record was closed.
        if self.state == RelayState::Open {
            self.recorder.add_sent_bytes(bytes.len());
        }
        Poll::Ready(Some(Ok(BodyFrame::data(bytes))))
    }
}

impl Drop for StreamRelay {
    /// The client went away, or the gateway stops: usage so far is counted.
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
                let cut = || Some(Err("the stream was interrupted".into()));
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
                                UpstreamError::malformed(relay.protocol, "frame too large");
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
                    let what = "the stream stalled: no data";
                    let broken =
                        UpstreamError::timed_out(relay.protocol, what, relay.stall_timeout);
                    relay.break_off(&broken, true);
                }
            }
        }
    }
}
