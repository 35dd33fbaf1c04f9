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
use unstuck_core::agent::StreamError;

use super::account::Account;
use super::attempt::{MALFORMED, NO_END, Opened};
use super::broken::{Broken, STOPPED};
use crate::elsewhere::PageError;
use crate::ending::Hearing;
use crate::protocol::{Frame, Frames, Protocol, Reading, error_event};
use crate::upstream::Arriving;

/// So much is merged at most, so that nothing waits for long behind what keeps coming.
const MERGED: usize = 16 << 10;
/// A frame that has not ended after so many bytes never will. No more is kept back after one that could not be read.
const LONGEST_FRAME: usize = 32 << 20;
/// So often in a row the runtime is given the chance to bring more of what is already there, where that comes from another
/// task.
const LOOKS: u8 = 2;

/// So long what was passed on is given to go out before the connection is ended.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// A stream that is passed on.
pub(crate) struct Relay {
    protocol: Protocol,
    body: Arriving,
    frames: Frames,
    reading: Reading,
    /// What can be passed on now.
    ready: BytesMut,
    /// What has come since a frame that could not be read: passed on once it is known that nothing is missing.
    doubtful: Option<BytesMut>,
    looks: u8,
    stall: Pin<Box<Sleep>>,
    /// When the last came that was more than a sign of life.
    alive: Instant,
    patience: Duration,
    state: State,
    /// How the client is told that it breaks.
    stream_error: StreamError,
    /// After this the connection is ended, and what was passed on before has gone out.
    severed: Option<Pin<Box<Sleep>>>,
    ending: Hearing,
    account: Box<Account>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// More may come.
    Open,
    /// Nothing more comes; what is ready is still to be passed on.
    Over,
}

impl Relay {
    /// Goes on where the first content has been read.
    pub(crate) fn new(
        opened: Opened,
        protocol: Protocol,
        patience: Duration,
        stream_error: StreamError,
        account: Box<Account>,
    ) -> Self {
        let mut relay = Self {
            protocol,
            body: opened.body,
            frames: opened.frames,
            reading: opened.reading,
            ready: opened.held,
            doubtful: None,
            looks: 0,
            stall: Box::pin(tokio::time::sleep(patience)),
            alive: Instant::now(),
            patience,
            state: State::Open,
            stream_error,
            severed: None,
            ending: account.shared.ending.hear(),
            account,
        };
        relay.take_frames();
        if opened.is_over {
            relay.ended();
        }
        relay
    }

    /// Reads what has arrived. What comes after a frame that cannot be read is kept back until the end shows whether anything
    /// is missing.
    fn take_frames(&mut self) {
        let mut is_alive = false;
        while self.state == State::Open {
            let Some(bytes) = self.frames.next() else {
                break;
            };
            match self.reading.frame(&bytes) {
                Frame::Ping => self.ready.extend_from_slice(&bytes),
                Frame::Lifecycle | Frame::Content | Frame::End => {
                    let to = self.doubtful.as_mut().unwrap_or(&mut self.ready);
                    to.extend_from_slice(&bytes);
                    is_alive = true;
                }
                Frame::Error => {
                    self.ready.extend_from_slice(&bytes);
                    let error = String::from_utf8_lossy(&bytes).into_owned();
                    let head = self.account.head();
                    let broken = Broken::said(self.protocol, head, &error);
                    self.break_off(&broken, false);
                }
                Frame::Malformed => {
                    self.doubtful.get_or_insert_default();
                }
            }
        }
        if is_alive {
            self.alive = Instant::now();
        }
    }

    /// The upstream has nothing more to say.
    fn ended(&mut self) {
        if self.state == State::Over {
            return;
        }
        // The blank line after the last frame is often left out.
        let rest = self.frames.rest().trim_ascii();
        if !rest.is_empty() && !self.reading.is_complete() {
            self.reading.frame(rest);
        }
        let doubtful = self.doubtful.take();
        if doubtful.is_some() && !(self.reading.is_finished() && self.reading.lost_nothing()) {
            let broken = Broken::damaged(self.protocol, MALFORMED);
            self.break_off(&broken, true);
        } else if self.reading.is_finished() {
            self.ready.extend_from_slice(&doubtful.unwrap_or_default());
            let rest = self.frames.rest();
            self.ready.extend_from_slice(rest);
            self.state = State::Over;
            self.account.sent(self.ready.len());
            self.account.close(&self.reading);
        } else {
            let broken = Broken::damaged(self.protocol, NO_END);
            self.break_off(&broken, true);
        }
    }

    /// The gateway ends before the stream does.
    fn cut_off(&mut self) {
        if self.state == State::Open {
            let broken = Broken::damaged(self.protocol, STOPPED);
            self.break_off(&broken, true);
        }
    }

    /// Ends the stream with an error that the client understands.
    fn break_off(&mut self, broken: &Broken, tell: bool) {
        self.account.sent(self.ready.len());
        let trouble = self.account.cut(broken, &self.reading);
        if self.stream_error == StreamError::Disconnect {
            self.severed = Some(Box::pin(tokio::time::sleep(LAST_WORDS)));
        } else if tell {
            let event = error_event(&self.reading, &trouble.told());
            self.ready.extend_from_slice(&event);
        }
        self.state = State::Over;
    }

    fn give(&mut self) -> Poll<Option<Result<BodyFrame<Bytes>, PageError>>> {
        self.looks = 0;
        let bytes = self.ready.split().freeze();
        // What is passed on at the end was counted when the account was closed.
        if self.state == State::Open {
            self.account.sent(bytes.len());
        }
        Poll::Ready(Some(Ok(BodyFrame::data(bytes))))
    }
}

impl Drop for Relay {
    /// The client went away, or the gateway has ended: what was used so far counts.
    fn drop(&mut self) {
        if self.state == State::Open {
            self.account.abandon(&self.reading);
        }
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = PageError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, PageError>>> {
        let relay = self.get_mut();
        if Pin::new(&mut relay.ending).poll(context).is_ready() {
            relay.cut_off();
        }
        loop {
            if relay.state == State::Over {
                if !relay.ready.is_empty() {
                    return relay.give();
                }
                let Some(severed) = &mut relay.severed else {
                    return Poll::Ready(None);
                };
                let cut = || Some(Err("the stream broke".into()));
                return severed.as_mut().poll(context).map(|()| cut());
            }
            if relay.ready.len() >= MERGED {
                return relay.give();
            }
            match Pin::new(&mut relay.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        relay.looks = 0;
                        relay.frames.push(data);
                        relay.take_frames();
                        let doubtful = relay.doubtful.as_ref().map_or(0, BytesMut::len);
                        if relay.frames.rest().len() + doubtful > LONGEST_FRAME {
                            let broken = Broken::damaged(relay.protocol, "a frame without end");
                            relay.break_off(&broken, true);
                        }
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    let doing = "connection reset in the middle of the stream";
                    let broken = Broken::transport(relay.protocol, doing, &error);
                    relay.break_off(&broken, true);
                }
                Poll::Ready(None) => relay.ended(),
                Poll::Pending if !relay.ready.is_empty() => {
                    if relay.body.is_at_hand() || relay.looks >= LOOKS {
                        return relay.give();
                    }
                    relay.looks += 1;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => {
                    if relay.stall.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    let until = relay.alive + relay.patience;
                    if until > Instant::now() {
                        relay.stall.as_mut().reset(until);
                        continue;
                    }
                    let what = "the stream stalled: nothing more";
                    let broken = Broken::silent(relay.protocol, what, relay.patience);
                    relay.break_off(&broken, true);
                }
            }
        }
    }
}
