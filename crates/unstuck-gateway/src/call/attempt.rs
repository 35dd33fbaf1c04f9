//! One try at one upstream: sent, and read until it is clear whether it worked.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::header::CONTENT_TYPE;
use hyper::http::response::Parts;
use hyper::{Request, Response};
use serde::de::IgnoredAny;
use tokio::time::{Instant, timeout, timeout_at};

use super::broken::Broken;
use crate::protocol::{Endpoint, Frame, Frames, Protocol, Reading};
use crate::settings::TimeLimits;
use crate::upstream::{Arriving, Outgoing, Sender};

/// So much of an answer that is an error is read.
const ERROR_BODY: usize = 1 << 20;
/// So long an error body may take; its status has said the most.
const ERROR_TIME: Duration = Duration::from_secs(10);
/// So much may come before the first content.
const HELD: usize = 16 << 20;
/// A longer answer is not kept in memory to see whether it is whole.
const WHOLE_BODY: usize = 256 << 20;

/// What is said of a frame that cannot be read.
pub(super) const MALFORMED: &str = "a malformed chunk";
/// What is said of a stream that only seems to be over.
pub(super) const NO_END: &str = "the stream ended without its end marker";

/// What a try came to.
pub(crate) enum Tried {
    /// The whole answer is here.
    Whole(Box<Whole>),
    /// The first content of a stream is here.
    Opened(Box<Opened>),
    /// It did not work.
    Broken(Box<Broken>, Option<Parts>),
}

/// An answer that is all here.
pub(crate) struct Whole {
    pub(crate) head: Parts,
    pub(crate) body: Bytes,
    pub(crate) reading: Reading,
}

/// A stream whose first content is here.
pub(crate) struct Opened {
    pub(crate) head: Parts,
    /// What has been read and not been passed on.
    pub(crate) held: BytesMut,
    pub(crate) frames: Frames,
    pub(crate) reading: Reading,
    pub(crate) body: Arriving,
    /// Whether there is something in it that the client would see.
    has_content: bool,
    /// Whether all of it has been read.
    pub(crate) is_over: bool,
}

/// How a try is made.
pub(crate) struct Trying<'a> {
    pub(crate) sender: &'a Sender,
    pub(crate) protocol: Protocol,
    pub(crate) endpoint: Endpoint,
    /// Whether the client asked for pieces.
    pub(crate) stream: bool,
    pub(crate) keeps_text: bool,
    /// Whether a stream is read to its end before any of it is passed on.
    pub(crate) buffered: bool,
    /// How long the head of the answer may take.
    pub(crate) head: Duration,
    /// How long the first token of a stream may take; none where there is nobody else to ask.
    pub(crate) first_token: Option<Duration>,
    pub(crate) limits: &'a TimeLimits,
}

impl Trying<'_> {
    /// Sends a request, and reads the answer until it is clear whether it worked.
    pub(crate) async fn make(&self, request: Request<Outgoing>) -> Tried {
        let started = Instant::now();
        let response = match timeout(self.head, self.sender.request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return broken(Broken::transport(
                    self.protocol,
                    "cannot reach the API",
                    &error,
                ));
            }
            Err(_) => return broken(Broken::silent(self.protocol, "no response", self.head)),
        };
        if response.status().is_client_error() || response.status().is_server_error() {
            return self.refused(response).await;
        }
        let is_stream = self.stream && is_stream(&response);
        match is_stream {
            true => self.open(response).await,
            false => {
                // Some send the head at once, and what they promise when all of it is written.
                let left = self.head.saturating_sub(started.elapsed());
                self.read_whole(response, left.max(self.limits.stall)).await
            }
        }
    }

    fn reading(&self) -> Reading {
        match self.keeps_text {
            true => Reading::new(self.endpoint).keeping_text(),
            false => Reading::new(self.endpoint),
        }
    }

    async fn refused(&self, response: Response<Arriving>) -> Tried {
        let (head, mut body) = response.into_parts();
        let mut read = BytesMut::new();
        let deadline = Instant::now() + ERROR_TIME;
        // What cannot be read of it is missed; the status has said the most.
        while let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await {
            if let Ok(data) = frame.into_data() {
                read.extend_from_slice(&data);
            }
            if read.len() > ERROR_BODY {
                break;
            }
        }
        broken(Broken::refused(self.protocol, head, read.freeze()))
    }

    async fn read_whole(&self, response: Response<Arriving>, first: Duration) -> Tried {
        let (head, mut body) = response.into_parts();
        let mut read = BytesMut::new();
        let mut wait = first;
        loop {
            let frame = timeout(wait, body.frame()).await;
            match frame {
                Err(_) => {
                    let silent =
                        Broken::silent(self.protocol, "the answer stalled: nothing more", wait);
                    return Tried::Broken(Box::new(silent), Some(head));
                }
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    let lost = Broken::transport(
                        self.protocol,
                        "connection reset while reading the answer",
                        &error,
                    );
                    return Tried::Broken(Box::new(lost), Some(head));
                }
                Ok(Some(Ok(frame))) => {
                    wait = self.limits.stall;
                    if let Ok(data) = frame.into_data() {
                        read.extend_from_slice(&data);
                    }
                }
            }
            if read.len() > WHOLE_BODY {
                let long = Broken::damaged(self.protocol, "the answer is too long");
                return Tried::Broken(Box::new(long), Some(head));
            }
        }
        let body = read.freeze();
        let mut reading = self.reading();
        let wrong = match reading.whole(&body) {
            Frame::Error => {
                let error = reading.said().error.as_deref().unwrap_or_default();
                Some(Broken::said(self.protocol, Some(&head), error))
            }
            // What is whole and only of an unknown shape is the client's to judge.
            Frame::Malformed if serde_json::from_slice::<IgnoredAny>(&body).is_ok() => None,
            Frame::Malformed => Some(self.unreadable(&head, &body)),
            Frame::Content | Frame::End | Frame::Lifecycle | Frame::Ping => None,
        };
        match wrong {
            Some(broken) => Tried::Broken(Box::new(broken), Some(head)),
            None => Tried::Whole(Box::new(Whole {
                head,
                body,
                reading,
            })),
        }
    }

    /// An answer with a good status that is none: a page of some proxy, or one that was cut off.
    fn unreadable(&self, head: &Parts, body: &[u8]) -> Broken {
        let is_page = body.trim_ascii_start().starts_with(b"<");
        match is_page {
            true => Broken::damaged(self.protocol, "a page came instead of an answer"),
            false => {
                let kind = head
                    .headers
                    .get(CONTENT_TYPE)
                    .and_then(|value| value.to_str().ok());
                let what = format!(
                    "the answer is not whole: {} bytes of {} that are no JSON",
                    body.len(),
                    kind.unwrap_or("an unknown type")
                );
                Broken::damaged(self.protocol, &what)
            }
        }
    }

    async fn open(&self, response: Response<Arriving>) -> Tried {
        let (head, body) = response.into_parts();
        let content_type = head
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let mut opened = Box::new(Opened {
            frames: Frames::new(self.endpoint, content_type.unwrap_or_default()),
            reading: self.reading(),
            held: BytesMut::new(),
            head,
            body,
            has_content: false,
            is_over: false,
        });
        let first_token = self.first_token;
        if let Some(silence) = first_token.filter(|one| *one < self.limits.first_content) {
            let begun = timeout(silence, opened.until_begun(self.protocol)).await;
            if begun.is_err() {
                let silent = Broken::silent(self.protocol, "no first token", silence);
                return Tried::Broken(Box::new(silent), Some(opened.head));
            }
            if let Ok(Err(broken)) = begun {
                return Tried::Broken(Box::new(broken), Some(opened.head));
            }
        }
        let limit = self.limits.first_content;
        match timeout(limit, opened.until_content(self.protocol)).await {
            Ok(Ok(())) if self.buffered => self.buffer(opened).await,
            Ok(Ok(())) => Tried::Opened(opened),
            Ok(Err(broken)) => Tried::Broken(Box::new(broken), Some(opened.head)),
            Err(_) => {
                let silent = Broken::silent(self.protocol, "no first token", limit);
                Tried::Broken(Box::new(silent), Some(opened.head))
            }
        }
    }

    /// Reads a stream to its end, so that whatever breaks it can be tried again unseen.
    async fn buffer(&self, mut opened: Box<Opened>) -> Tried {
        match opened.until_end(self.protocol, self.limits.stall).await {
            Ok(()) => Tried::Opened(opened),
            Err(broken) => Tried::Broken(Box::new(broken), Some(opened.head)),
        }
    }
}

impl Opened {
    /// Reads on until all of it is here. Signs of life alone do not keep it going.
    async fn until_end(&mut self, protocol: Protocol, stall: Duration) -> Result<(), Broken> {
        let mut alive = Instant::now();
        while !self.is_over {
            for bytes in self.frames.by_ref() {
                match self.reading.frame(&bytes) {
                    Frame::Error => {
                        let error = String::from_utf8_lossy(&bytes);
                        return Err(Broken::said(protocol, Some(&self.head), &error));
                    }
                    Frame::Malformed => return Err(Broken::damaged(protocol, MALFORMED)),
                    Frame::Ping => {}
                    Frame::Lifecycle | Frame::Content | Frame::End => alive = Instant::now(),
                }
                self.held.extend_from_slice(&bytes);
            }
            if self.held.len() + self.frames.rest().len() > WHOLE_BODY {
                return Err(Broken::damaged(protocol, "the answer is too long"));
            }
            match timeout_at(alive + stall, self.body.frame()).await {
                Err(_) => {
                    let what = "the stream stalled: nothing more";
                    return Err(Broken::silent(protocol, what, stall));
                }
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.frames.push(data);
                    }
                }
                Ok(Some(Err(error))) => {
                    let doing = "connection reset in the middle of the stream";
                    return Err(Broken::transport(protocol, doing, &error));
                }
                Ok(None) => {
                    let rest = self.frames.rest().trim_ascii();
                    if !rest.is_empty() && !self.reading.is_finished() {
                        self.reading.frame(rest);
                    }
                    if !self.reading.is_finished() {
                        return Err(Broken::damaged(protocol, NO_END));
                    }
                    self.is_over = true;
                }
            }
        }
        Ok(())
    }

    /// Reads on until it is clear that somebody works on the answer. Anthropic's Messages and OpenAI's Responses say so before a
    /// model thinks; with others the first token is the first that says anything.
    async fn until_begun(&mut self, protocol: Protocol) -> Result<(), Broken> {
        let endpoint = self.reading.endpoint();
        let tells = matches!(endpoint, Endpoint::Messages | Endpoint::Responses);
        self.until(protocol, tells).await
    }

    /// Reads on until there is something that the client would see.
    async fn until_content(&mut self, protocol: Protocol) -> Result<(), Broken> {
        self.until(protocol, false).await
    }

    async fn until(&mut self, protocol: Protocol, or_begun: bool) -> Result<(), Broken> {
        while !self.has_content {
            for bytes in self.frames.by_ref() {
                let frame = self.reading.frame(&bytes);
                match frame {
                    Frame::Error => {
                        let error = String::from_utf8_lossy(&bytes);
                        return Err(Broken::said(protocol, Some(&self.head), &error));
                    }
                    Frame::Malformed => {
                        return Err(Broken::damaged(protocol, MALFORMED));
                    }
                    Frame::Ping | Frame::Lifecycle | Frame::Content | Frame::End => {
                        self.held.extend_from_slice(&bytes);
                    }
                }
                self.has_content = matches!(frame, Frame::Content | Frame::End);
                if self.has_content || or_begun && frame == Frame::Lifecycle {
                    return Ok(());
                }
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.frames.push(data);
                    }
                    if self.held.len() + self.frames.rest().len() > HELD {
                        return Err(Broken::damaged(
                            protocol,
                            "too much before the first content",
                        ));
                    }
                }
                Some(Err(error)) => {
                    let doing = "connection reset before the first content";
                    return Err(Broken::transport(protocol, doing, &error));
                }
                None if self.reading.is_finished() => {
                    self.is_over = true;
                    self.has_content = true;
                }
                None => {
                    return Err(Broken::damaged(
                        protocol,
                        "the stream ended before its first content",
                    ));
                }
            }
        }
        Ok(())
    }
}

fn broken(broken: Broken) -> Tried {
    Tried::Broken(Box::new(broken), None)
}

/// Whether an answer comes in pieces, as was asked for.
fn is_stream(response: &Response<Arriving>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is = |name: &str| {
        kind.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    // One protocol sends its pieces as the elements of an array.
    is("text/event-stream") || is("application/json")
}
