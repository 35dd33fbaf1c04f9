//! Broken answers: streams that stop, are corrupt or fall silent, and connections that end too early.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::CONTENT_LENGTH;

use super::paced_body::{BodyEnd, BodyPiece, PacedBody, Pings};
use super::raw_connection::{ConnectionEndedByScript, RawConnectionFault};
use super::response_builder::{EVENTS, JSON, PacedResponse, ReplyContext, paced_response};
use crate::protocol::Rejection;
use crate::script::{
    ConnectionResetPoint, FaultScriptReply, FaultStreamCutMode, StreamedApiErrorKind,
};

impl ReplyContext<'_> {
    /// Returns the answer of a broken reply.
    pub(super) fn broken_response(
        &self,
        reply: &FaultScriptReply,
    ) -> Result<PacedResponse, ConnectionEndedByScript> {
        Ok(match reply {
            FaultScriptReply::Stall => self.body(Vec::new(), BodyEnd::Silence(None)),
            FaultScriptReply::StallAt {
                after,
                wait,
                pings,
                cut,
            } => {
                let end = if *cut {
                    BodyEnd::Cut
                } else {
                    BodyEnd::Complete
                };
                self.stall(*after, *wait, *pings, end)
            }
            FaultScriptReply::SlowFirstToken { wait, pings } => {
                let after = self.protocol.opening_frames();
                self.stall(after, Some(*wait), *pings, BodyEnd::Complete)
            }
            FaultScriptReply::Cut => self.half_response(BodyEnd::Cut),
            FaultScriptReply::CutAt { after, by } => self.cut(*after, *by),
            FaultScriptReply::Reset { by } => return self.reset(*by),
            FaultScriptReply::StreamError => self.error_at(None, StreamedApiErrorKind::Overloaded),
            FaultScriptReply::ErrorAt { after, error } => self.error_at(Some(*after), *error),
            FaultScriptReply::BadChunk { after, extra } => self.bad_chunk(*after, *extra),
            FaultScriptReply::MissingEnd { reason_too } => self.missing_end(*reason_too),
            FaultScriptReply::Malformed => self.malformed(),
            FaultScriptReply::InvalidJson => self.bad_chunk(self.protocol.opening_frames(), false),
            FaultScriptReply::WrongLength { by } => return Err(self.wrong_length(*by)),
            FaultScriptReply::BadFraming => return Err(self.bad_framing()),
            FaultScriptReply::NotHttp => {
                let nonsense = Bytes::from_static(b"\x00\x15\x03 this is not HTTP\r\n\r\n");
                return Err(self.end_connection(RawConnectionFault::Bytes(nonsense)));
            }
            _ => self.refusal(&Rejection::NoStep),
        })
    }

    fn frames(&self) -> Vec<String> {
        self.protocol.stream(&self.interrupted_message(), self.call)
    }

    fn text(&self) -> String {
        self.protocol
            .document(&self.interrupted_message())
            .to_string()
    }

    fn body(&self, pieces: Vec<BodyPiece>, end: BodyEnd) -> PacedResponse {
        paced_response(
            StatusCode::OK,
            self.content_type(),
            PacedBody::new(pieces, end),
        )
    }

    /// Returns the first half of the answer; a document states its full length.
    fn half_response(&self, end: BodyEnd) -> PacedResponse {
        if self.call.wants_stream {
            let mut frames = self.frames();
            frames.truncate(frames.len().div_ceil(2));
            return self.body(self.paced_frames(frames), end);
        }
        let text = self.text();
        let length = text.len();
        let half = Bytes::from(text).slice(..length / 2);
        let mut response = paced_response(StatusCode::OK, JSON, PacedBody::new([half], end));
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
        response
    }

    fn cut(&self, after: usize, by: FaultStreamCutMode) -> PacedResponse {
        let end = match by {
            FaultStreamCutMode::Close => BodyEnd::Cut,
            FaultStreamCutMode::Reset => BodyEnd::Reset(Arc::clone(self.line)),
            FaultStreamCutMode::End => BodyEnd::Complete,
        };
        if !self.call.wants_stream {
            return match by {
                FaultStreamCutMode::End => self.malformed(),
                _ => self.half_response(end),
            };
        }
        let mut frames = self.frames();
        frames.truncate(after);
        self.body(self.paced_frames(frames), end)
    }

    fn reset(&self, by: ConnectionResetPoint) -> Result<PacedResponse, ConnectionEndedByScript> {
        let end = BodyEnd::Reset(Arc::clone(self.line));
        match by {
            ConnectionResetPoint::BeforeHeaders => {
                Err(self.end_connection(RawConnectionFault::Reset))
            }
            ConnectionResetPoint::AfterHeaders => Ok(self.body(Vec::new(), end)),
            ConnectionResetPoint::MidBody => Ok(self.half_response(end)),
        }
    }

    /// Returns a stream that stalls after some frames; a document stalls after its first half.
    fn stall(
        &self,
        after: usize,
        wait: Option<Duration>,
        pings: Option<Duration>,
        end: BodyEnd,
    ) -> PacedResponse {
        let mut pieces = if self.call.wants_stream {
            self.paced_frames(self.frames())
        } else {
            let text = Bytes::from(self.text());
            let half = text.len() / 2;
            vec![text.slice(..half).into(), text.slice(half..).into()]
        };
        let after = if self.call.wants_stream { after } else { 1 };
        let frame = self.protocol.ping();
        let pings = pings
            .filter(|_| self.call.wants_stream)
            .map(|every| Pings { every, frame });
        match (wait, pieces.get_mut(after)) {
            (Some(wait), Some(next)) => {
                next.wait = wait;
                next.pings = pings;
                if matches!(end, BodyEnd::Cut) {
                    pieces.truncate(after + 1);
                }
                self.body(pieces, end)
            }
            (Some(_), None) => self.body(pieces, BodyEnd::Complete),
            (None, _) => {
                pieces.truncate(after);
                self.body(pieces, BodyEnd::Silence(pings))
            }
        }
    }

    /// Returns a stream with an error after some frames, or after half of them.
    fn error_at(&self, after: Option<usize>, error: StreamedApiErrorKind) -> PacedResponse {
        let rejection = match error {
            StreamedApiErrorKind::Overloaded => Rejection::Overloaded,
            StreamedApiErrorKind::ServerError => Rejection::ServerError,
            StreamedApiErrorKind::RateLimit => Rejection::RateLimit { retry_after: None },
            StreamedApiErrorKind::ContextLimit => Rejection::ContextLimit,
        };
        if !self.call.wants_stream {
            return self.refusal(&rejection);
        }
        let message = self.interrupted_message();
        let mut frames = self.frames();
        frames.truncate(after.unwrap_or(frames.len().div_ceil(2)));
        let failed = self
            .protocol
            .error_frame(&message, &rejection, frames.len());
        frames.push(failed);
        self.body(self.paced_frames(frames), BodyEnd::Complete)
    }

    /// Returns a stream in which one frame is not JSON, or a document that is not JSON.
    fn bad_chunk(&self, after: usize, extra: bool) -> PacedResponse {
        if !self.call.wants_stream {
            let spoilt = corrupt_json(&self.text());
            return self.body(vec![spoilt.into()], BodyEnd::Complete);
        }
        let mut frames = self.frames();
        let at = after.min(frames.len().saturating_sub(1));
        let bad = corrupt_json(&frames[at]);
        if extra {
            frames.insert(at, bad)
        } else {
            frames[at] = bad
        }
        self.body(self.paced_frames(frames), BodyEnd::Complete)
    }

    fn missing_end(&self, reason_too: bool) -> PacedResponse {
        if !self.call.wants_stream {
            return self.malformed();
        }
        let mut frames = self.frames();
        let closing = self.protocol.closing_frames(self.call);
        let left_out = if reason_too {
            closing.with_reason
        } else {
            closing.marker
        };
        frames.truncate(frames.len().saturating_sub(left_out));
        self.body(self.paced_frames(frames), BodyEnd::Complete)
    }

    /// Returns a first frame or document that breaks off inside its JSON, properly ended by HTTP.
    fn malformed(&self) -> PacedResponse {
        let text = if self.call.wants_stream {
            self.frames().swap_remove(0)
        } else {
            self.text()
        };
        let half = text[..text.floor_char_boundary(text.len() * 2 / 3)].to_owned();
        let ending = if self.call.wants_stream { "\n\n" } else { "" };
        self.body(vec![(half + ending).into()], BodyEnd::Complete)
    }

    fn wrong_length(&self, by: i64) -> ConnectionEndedByScript {
        let body = self.full_text();
        let length = i64::try_from(body.len()).unwrap_or(i64::MAX);
        let stated = length.saturating_add(by).max(0);
        let head = self.raw_head(&format!("content-length: {stated}"));
        self.end_connection(RawConnectionFault::Bytes(Bytes::from(head + &body)))
    }

    fn bad_framing(&self) -> ConnectionEndedByScript {
        let head = self.raw_head("transfer-encoding: chunked");
        let body = self.full_text();
        self.end_connection(RawConnectionFault::Bytes(Bytes::from(format!(
            "{head}zz\r\n{body}"
        ))))
    }

    /// Returns the complete answer as one text.
    fn full_text(&self) -> String {
        if self.call.wants_stream {
            self.frames().concat()
        } else {
            self.text()
        }
    }

    /// Returns the head of an answer that is written past HTTP.
    fn raw_head(&self, framing: &str) -> String {
        let kind = if self.call.wants_stream { EVENTS } else { JSON };
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{framing}\r\n\r\n")
    }
}

/// Returns a text of the same length whose JSON is invalid in one place: no parser accepts `;` for `:`.
fn corrupt_json(text: &str) -> String {
    if text.contains("\":") {
        text.replacen("\":", "\";", 1)
    } else {
        text.replacen('[', "{", 1)
    }
}
