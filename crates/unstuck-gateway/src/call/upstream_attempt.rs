//! One attempt at one upstream: sends the request and reads until the outcome is clear.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::header::CONTENT_TYPE;
use hyper::http::response::Parts;
use hyper::{Request, Response};
use serde::de::IgnoredAny;
use tokio::time::{Instant, timeout, timeout_at};

use super::upstream_error::UpstreamError;
use crate::protocol::{FrameKind, FrameSplitter, LlmApiEndpoint, Protocol, ResponseReader};
use crate::settings::GatewayTimeLimits;
use crate::upstream::{RequestBody, UpstreamClient, UpstreamResponseBody};

/// The maximum size of an error body that is read.
const MAX_ERROR_BODY: usize = 1 << 20;
/// The time limit for an error body; its status has said the most.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of bytes before the first content.
const MAX_HELD_BYTES: usize = 16 << 20;
/// Longer responses are not buffered to check that they are complete.
const MAX_WHOLE_BODY: usize = 256 << 20;

/// The message for an unreadable frame.
pub(super) const MALFORMED: &str = "malformed chunk";
/// The message for a stream that only seems to have ended.
pub(super) const NO_END: &str = "the stream ended without its end marker";

/// The outcome of an attempt.
pub(crate) enum ApiAttemptOutcome {
    /// The complete response has arrived.
    Complete(Box<CompleteResponse>),
    /// The first content of a stream has arrived.
    Started(Box<StartedStream>),
    /// The attempt failed.
    Failed(Box<UpstreamError>, Option<Parts>),
}

/// A complete response.
pub(crate) struct CompleteResponse {
    pub(crate) head: Parts,
    pub(crate) body: Bytes,
    pub(crate) reader: ResponseReader,
}

/// A stream whose first content has arrived.
pub(crate) struct StartedStream {
    pub(crate) head: Parts,
    /// The bytes that were read and not passed on yet.
    pub(crate) held: BytesMut,
    pub(crate) frames: FrameSplitter,
    pub(crate) reader: ResponseReader,
    pub(crate) body: UpstreamResponseBody,
    /// True if the stream has content visible to the client.
    has_content: bool,
    /// True if the stream was read to its end.
    pub(crate) is_over: bool,
}

/// One attempt at an upstream: the HTTP client, the format and the time limits.
pub(crate) struct UpstreamAttemptSender<'a> {
    pub(crate) sender: &'a UpstreamClient,
    pub(crate) protocol: Protocol,
    pub(crate) endpoint: LlmApiEndpoint,
    /// If set, the client asked for a stream.
    pub(crate) stream: bool,
    pub(crate) keeps_text: bool,
    /// If set, a stream is read to its end before any of it is passed on.
    pub(crate) buffered: bool,
    /// The time limit for the response head.
    pub(crate) head_timeout: Duration,
    /// The time limit for the first token of a stream; `None` without a fallback.
    pub(crate) first_token_timeout: Option<Duration>,
    pub(crate) limits: &'a GatewayTimeLimits,
}

impl UpstreamAttemptSender<'_> {
    /// Sends a request and reads the response until the outcome is clear.
    pub(crate) async fn send(&self, request: Request<RequestBody>) -> ApiAttemptOutcome {
        let started = Instant::now();
        let response = match timeout(self.head_timeout, self.sender.request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return failed(UpstreamError::transport(
                    self.protocol,
                    "cannot reach the API",
                    &error,
                ));
            }
            Err(_) => {
                return failed(UpstreamError::timed_out(
                    self.protocol,
                    "no response",
                    self.head_timeout,
                ));
            }
        };
        if response.status().is_client_error() || response.status().is_server_error() {
            return self.read_refusal(response).await;
        }
        let is_stream = self.stream && is_stream(&response);
        if is_stream {
            self.open_stream(response).await
        } else {
            // Some send the head at once and announce a body that comes only when it is complete.
            let left = self.head_timeout.saturating_sub(started.elapsed());
            self.read_complete(response, left.max(self.limits.stall))
                .await
        }
    }

    fn response_reader(&self) -> ResponseReader {
        if self.keeps_text {
            ResponseReader::new(self.endpoint).with_text()
        } else {
            ResponseReader::new(self.endpoint)
        }
    }

    async fn read_refusal(&self, response: Response<UpstreamResponseBody>) -> ApiAttemptOutcome {
        let (head, mut body) = response.into_parts();
        let mut read = BytesMut::new();
        let deadline = Instant::now() + ERROR_BODY_TIMEOUT;
        // A body that cannot be read is dropped; the status has said the most.
        while let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await {
            if let Ok(data) = frame.into_data() {
                read.extend_from_slice(&data);
            }
            if read.len() > MAX_ERROR_BODY {
                break;
            }
        }
        failed(UpstreamError::refused(self.protocol, head, read.freeze()))
    }

    async fn read_complete(
        &self,
        response: Response<UpstreamResponseBody>,
        first: Duration,
    ) -> ApiAttemptOutcome {
        let (head, mut body) = response.into_parts();
        let mut read = BytesMut::new();
        let mut wait = first;
        loop {
            let frame = timeout(wait, body.frame()).await;
            match frame {
                Err(_) => {
                    let silent = UpstreamError::timed_out(
                        self.protocol,
                        "the response stalled: no data",
                        wait,
                    );
                    return ApiAttemptOutcome::Failed(Box::new(silent), Some(head));
                }
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    let lost = UpstreamError::transport(
                        self.protocol,
                        "connection reset while reading the response",
                        &error,
                    );
                    return ApiAttemptOutcome::Failed(Box::new(lost), Some(head));
                }
                Ok(Some(Ok(frame))) => {
                    wait = self.limits.stall;
                    if let Ok(data) = frame.into_data() {
                        read.extend_from_slice(&data);
                    }
                }
            }
            if read.len() > MAX_WHOLE_BODY {
                let long = UpstreamError::malformed(self.protocol, "the response is too long");
                return ApiAttemptOutcome::Failed(Box::new(long), Some(head));
            }
        }
        let body = read.freeze();
        let mut reading = self.response_reader();
        let wrong = match reading.read_body(&body) {
            FrameKind::Error => {
                let error = reading.summary().error.as_deref().unwrap_or_default();
                Some(UpstreamError::in_stream(self.protocol, Some(&head), error))
            }
            // A complete body of unknown shape is left to the client to judge.
            FrameKind::Malformed if serde_json::from_slice::<IgnoredAny>(&body).is_ok() => None,
            FrameKind::Malformed => Some(self.unreadable_response(&head, &body)),
            FrameKind::Content | FrameKind::End | FrameKind::Lifecycle | FrameKind::Ping => None,
        };
        match wrong {
            Some(broken) => ApiAttemptOutcome::Failed(Box::new(broken), Some(head)),
            None => ApiAttemptOutcome::Complete(Box::new(CompleteResponse {
                head,
                body,
                reader: reading,
            })),
        }
    }

    /// Builds the error for a success status with an unusable body: a proxy's page, or a truncated response.
    fn unreadable_response(&self, head: &Parts, body: &[u8]) -> UpstreamError {
        let is_page = body.trim_ascii_start().starts_with(b"<");
        if is_page {
            UpstreamError::malformed(self.protocol, "received a web page instead of a response")
        } else {
            let kind = head
                .headers
                .get(CONTENT_TYPE)
                .and_then(|value| value.to_str().ok());
            let what = format!(
                "the response is incomplete: {} bytes of {} that are not JSON",
                body.len(),
                kind.unwrap_or("unknown type")
            );
            UpstreamError::malformed(self.protocol, &what)
        }
    }

    async fn open_stream(&self, response: Response<UpstreamResponseBody>) -> ApiAttemptOutcome {
        let (head, body) = response.into_parts();
        let content_type = head
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let mut opened = Box::new(StartedStream {
            frames: FrameSplitter::new(self.endpoint, content_type.unwrap_or_default()),
            reader: self.response_reader(),
            held: BytesMut::new(),
            head,
            body,
            has_content: false,
            is_over: false,
        });
        let first_token = self.first_token_timeout;
        if let Some(silence) = first_token.filter(|one| *one < self.limits.first_content) {
            let begun = timeout(silence, opened.read_until_begun(self.protocol)).await;
            if begun.is_err() {
                let silent = UpstreamError::timed_out(self.protocol, "no first token", silence);
                return ApiAttemptOutcome::Failed(Box::new(silent), Some(opened.head));
            }
            if let Ok(Err(broken)) = begun {
                return ApiAttemptOutcome::Failed(Box::new(broken), Some(opened.head));
            }
        }
        let limit = self.limits.first_content;
        match timeout(limit, opened.read_until_content(self.protocol)).await {
            Ok(Ok(())) if self.buffered => self.buffer_stream(opened).await,
            Ok(Ok(())) => ApiAttemptOutcome::Started(opened),
            Ok(Err(broken)) => ApiAttemptOutcome::Failed(Box::new(broken), Some(opened.head)),
            Err(_) => {
                let silent = UpstreamError::timed_out(self.protocol, "no first token", limit);
                ApiAttemptOutcome::Failed(Box::new(silent), Some(opened.head))
            }
        }
    }

    /// Reads a stream to its end, so that it can be retried invisibly if it breaks.
    async fn buffer_stream(&self, mut opened: Box<StartedStream>) -> ApiAttemptOutcome {
        match opened
            .read_until_end(self.protocol, self.limits.stall)
            .await
        {
            Ok(()) => ApiAttemptOutcome::Started(opened),
            Err(broken) => ApiAttemptOutcome::Failed(Box::new(broken), Some(opened.head)),
        }
    }
}

impl StartedStream {
    /// Reads until the response is complete. Keep-alive bytes alone do not extend the time.
    async fn read_until_end(
        &mut self,
        protocol: Protocol,
        stall: Duration,
    ) -> Result<(), UpstreamError> {
        let mut alive = Instant::now();
        while !self.is_over {
            for bytes in self.frames.by_ref() {
                match self.reader.read_frame(&bytes) {
                    FrameKind::Error => {
                        let error = String::from_utf8_lossy(&bytes);
                        return Err(UpstreamError::in_stream(protocol, Some(&self.head), &error));
                    }
                    FrameKind::Malformed => {
                        return Err(UpstreamError::malformed(protocol, MALFORMED));
                    }
                    FrameKind::Ping => {}
                    FrameKind::Lifecycle | FrameKind::Content | FrameKind::End => {
                        alive = Instant::now()
                    }
                }
                self.held.extend_from_slice(&bytes);
            }
            if self.held.len() + self.frames.remainder().len() > MAX_WHOLE_BODY {
                return Err(UpstreamError::malformed(
                    protocol,
                    "the response is too long",
                ));
            }
            match timeout_at(alive + stall, self.body.frame()).await {
                Err(_) => {
                    let what = "the stream stalled: no data";
                    return Err(UpstreamError::timed_out(protocol, what, stall));
                }
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.frames.push(data);
                    }
                }
                Ok(Some(Err(error))) => {
                    let doing = "connection reset in the middle of the stream";
                    return Err(UpstreamError::transport(protocol, doing, &error));
                }
                Ok(None) => {
                    let rest = self.frames.remainder().trim_ascii();
                    if !rest.is_empty() && !self.reader.is_finished() {
                        self.reader.read_frame(rest);
                    }
                    if !self.reader.is_finished() {
                        return Err(UpstreamError::malformed(protocol, NO_END));
                    }
                    self.is_over = true;
                }
            }
        }
        Ok(())
    }

    /// Reads until it is clear that the upstream works on the response. Anthropic's Messages and OpenAI's Responses say
    /// so before a model thinks; with others the first token is the first sign.
    async fn read_until_begun(&mut self, protocol: Protocol) -> Result<(), UpstreamError> {
        let endpoint = self.reader.endpoint();
        let tells = matches!(
            endpoint,
            LlmApiEndpoint::Messages | LlmApiEndpoint::Responses
        );
        self.read_until(protocol, tells).await
    }

    /// Reads until there is content visible to the client.
    async fn read_until_content(&mut self, protocol: Protocol) -> Result<(), UpstreamError> {
        self.read_until(protocol, false).await
    }

    async fn read_until(
        &mut self,
        protocol: Protocol,
        or_begun: bool,
    ) -> Result<(), UpstreamError> {
        while !self.has_content {
            for bytes in self.frames.by_ref() {
                let frame = self.reader.read_frame(&bytes);
                match frame {
                    FrameKind::Error => {
                        let error = String::from_utf8_lossy(&bytes);
                        return Err(UpstreamError::in_stream(protocol, Some(&self.head), &error));
                    }
                    FrameKind::Malformed => {
                        return Err(UpstreamError::malformed(protocol, MALFORMED));
                    }
                    FrameKind::Ping
                    | FrameKind::Lifecycle
                    | FrameKind::Content
                    | FrameKind::End => {
                        self.held.extend_from_slice(&bytes);
                    }
                }
                self.has_content = matches!(frame, FrameKind::Content | FrameKind::End);
                if self.has_content || or_begun && frame == FrameKind::Lifecycle {
                    return Ok(());
                }
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.frames.push(data);
                    }
                    if self.held.len() + self.frames.remainder().len() > MAX_HELD_BYTES {
                        return Err(UpstreamError::malformed(
                            protocol,
                            "too much data before the first content",
                        ));
                    }
                }
                Some(Err(error)) => {
                    let doing = "connection reset before the first content";
                    return Err(UpstreamError::transport(protocol, doing, &error));
                }
                None if self.reader.is_finished() => {
                    self.is_over = true;
                    self.has_content = true;
                }
                None => {
                    return Err(UpstreamError::malformed(
                        protocol,
                        "the stream ended before its first content",
                    ));
                }
            }
        }
        Ok(())
    }
}

fn failed(broken: UpstreamError) -> ApiAttemptOutcome {
    ApiAttemptOutcome::Failed(Box::new(broken), None)
}

/// Returns true if the response is streamed as requested.
fn is_stream(response: &Response<UpstreamResponseBody>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is = |name: &str| {
        kind.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    // Gemini may send the pieces of a stream as the elements of an array.
    is("text/event-stream") || is("application/json")
}
