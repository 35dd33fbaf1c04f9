//! Answers that break: streams that stop, lie or fall silent, and connections that end too early.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::CONTENT_LENGTH;

use super::answer::{Answered, Asked, EVENTS, JSON, answered};
use super::body::{End, Piece, Pieces, Pings};
use super::line::{Severed, Takeover};
use crate::protocol::Rejection;
use crate::script::{BrokenBy, CutBy, InStream, Reply};

impl Asked<'_> {
    /// The answer that a broken reply is.
    pub(super) fn trouble(&self, reply: &Reply) -> Result<Answered, Severed> {
        Ok(match reply {
            Reply::Stall => self.body(Vec::new(), End::Silence(None)),
            Reply::StallAt {
                after,
                wait,
                pings,
                cut,
            } => {
                let end = if *cut { End::Cut } else { End::Complete };
                self.stall(*after, *wait, *pings, end)
            }
            Reply::SlowFirstToken { wait, pings } => {
                let after = self.protocol.opening_frames();
                self.stall(after, Some(*wait), *pings, End::Complete)
            }
            Reply::Cut => self.half(End::Cut),
            Reply::CutAt { after, by } => self.cut(*after, *by),
            Reply::Reset { by } => return self.reset(*by),
            Reply::StreamError => self.error_at(None, InStream::Overloaded),
            Reply::ErrorAt { after, error } => self.error_at(Some(*after), *error),
            Reply::BadChunk { after, extra } => self.bad_chunk(*after, *extra),
            Reply::MissingEnd { reason_too } => self.missing_end(*reason_too),
            Reply::Malformed => self.malformed(),
            Reply::InvalidJson => self.bad_chunk(self.protocol.opening_frames(), false),
            Reply::WrongLength { by } => return Err(self.wrong_length(*by)),
            Reply::BadFraming => return Err(self.bad_framing()),
            Reply::NotHttp => {
                let nonsense = Bytes::from_static(b"\x00\x15\x03 this is not HTTP\r\n\r\n");
                return Err(self.severed(Takeover::Bytes(nonsense)));
            }
            _ => self.refused(&Rejection::NoStep),
        })
    }

    fn frames(&self) -> Vec<String> {
        self.protocol.stream(&self.lost(), self.call)
    }

    fn text(&self) -> String {
        self.protocol.document(&self.lost()).to_string()
    }

    fn body(&self, pieces: Vec<Piece>, end: End) -> Answered {
        answered(
            StatusCode::OK,
            self.content_type(),
            Pieces::new(pieces, end),
        )
    }

    /// The first half of the answer; a document states the length of all of it.
    fn half(&self, end: End) -> Answered {
        if self.call.streams {
            let mut frames = self.frames();
            frames.truncate(frames.len().div_ceil(2));
            return self.body(self.paced(frames), end);
        }
        let text = self.text();
        let length = text.len();
        let half = Bytes::from(text).slice(..length / 2);
        let mut response = answered(StatusCode::OK, JSON, Pieces::new([half], end));
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
        response
    }

    fn cut(&self, after: usize, by: CutBy) -> Answered {
        let end = match by {
            CutBy::Close => End::Cut,
            CutBy::Reset => End::Reset(Arc::clone(self.line)),
            CutBy::End => End::Complete,
        };
        if !self.call.streams {
            return match by {
                CutBy::End => self.malformed(),
                _ => self.half(end),
            };
        }
        let mut frames = self.frames();
        frames.truncate(after);
        self.body(self.paced(frames), end)
    }

    fn reset(&self, by: BrokenBy) -> Result<Answered, Severed> {
        let end = End::Reset(Arc::clone(self.line));
        match by {
            BrokenBy::BeforeHeaders => Err(self.severed(Takeover::Reset)),
            BrokenBy::AfterHeaders => Ok(self.body(Vec::new(), end)),
            BrokenBy::MidBody => Ok(self.half(end)),
        }
    }

    /// A stream that falls silent after some frames; a document does so after its first half.
    fn stall(
        &self,
        after: usize,
        wait: Option<Duration>,
        pings: Option<Duration>,
        end: End,
    ) -> Answered {
        let mut pieces = match self.call.streams {
            true => self.paced(self.frames()),
            false => {
                let text = Bytes::from(self.text());
                let half = text.len() / 2;
                vec![text.slice(..half).into(), text.slice(half..).into()]
            }
        };
        let after = if self.call.streams { after } else { 1 };
        let frame = self.protocol.ping();
        let pings = pings
            .filter(|_| self.call.streams)
            .map(|every| Pings { every, frame });
        match (wait, pieces.get_mut(after)) {
            (Some(wait), Some(next)) => {
                next.wait = wait;
                next.pings = pings;
                if matches!(end, End::Cut) {
                    pieces.truncate(after + 1);
                }
                self.body(pieces, end)
            }
            (Some(_), None) => self.body(pieces, End::Complete),
            (None, _) => {
                pieces.truncate(after);
                self.body(pieces, End::Silence(pings))
            }
        }
    }

    /// A stream that says what went wrong after some frames, or after half of them.
    fn error_at(&self, after: Option<usize>, error: InStream) -> Answered {
        let rejection = match error {
            InStream::Overloaded => Rejection::Overloaded,
            InStream::ServerError => Rejection::ServerError,
            InStream::RateLimit => Rejection::RateLimit { retry_after: None },
            InStream::ContextLimit => Rejection::ContextLimit,
        };
        if !self.call.streams {
            return self.refused(&rejection);
        }
        let message = self.lost();
        let mut frames = self.frames();
        frames.truncate(after.unwrap_or(frames.len().div_ceil(2)));
        let failed = self
            .protocol
            .error_frame(&message, &rejection, frames.len());
        frames.push(failed);
        self.body(self.paced(frames), End::Complete)
    }

    /// A stream one of whose frames is no JSON; a document that is none.
    fn bad_chunk(&self, after: usize, extra: bool) -> Answered {
        if !self.call.streams {
            let spoilt = spoilt(&self.text());
            return self.body(vec![spoilt.into()], End::Complete);
        }
        let mut frames = self.frames();
        let at = after.min(frames.len().saturating_sub(1));
        let bad = spoilt(&frames[at]);
        match extra {
            true => frames.insert(at, bad),
            false => frames[at] = bad,
        }
        self.body(self.paced(frames), End::Complete)
    }

    fn missing_end(&self, reason_too: bool) -> Answered {
        if !self.call.streams {
            return self.malformed();
        }
        let mut frames = self.frames();
        let closing = self.protocol.closing_frames(self.call);
        let left_out = match reason_too {
            true => closing.with_reason,
            false => closing.marker,
        };
        frames.truncate(frames.len().saturating_sub(left_out));
        self.body(self.paced(frames), End::Complete)
    }

    /// A first frame or document that breaks off inside its JSON, properly ended by HTTP.
    fn malformed(&self) -> Answered {
        let text = match self.call.streams {
            true => self.frames().swap_remove(0),
            false => self.text(),
        };
        let half = text[..text.floor_char_boundary(text.len() * 2 / 3)].to_owned();
        let ending = if self.call.streams { "\n\n" } else { "" };
        self.body(vec![(half + ending).into()], End::Complete)
    }

    fn wrong_length(&self, by: i64) -> Severed {
        let body = self.plain();
        let length = i64::try_from(body.len()).unwrap_or(i64::MAX);
        let stated = length.saturating_add(by).max(0);
        let head = self.raw_head(&format!("content-length: {stated}"));
        self.severed(Takeover::Bytes(Bytes::from(head + &body)))
    }

    fn bad_framing(&self) -> Severed {
        let head = self.raw_head("transfer-encoding: chunked");
        let body = self.plain();
        self.severed(Takeover::Bytes(Bytes::from(format!("{head}zz\r\n{body}"))))
    }

    /// The whole answer, as one text.
    fn plain(&self) -> String {
        match self.call.streams {
            true => self.frames().concat(),
            false => self.text(),
        }
    }

    /// The head of an answer that is written past HTTP.
    fn raw_head(&self, framing: &str) -> String {
        let kind = if self.call.streams { EVENTS } else { JSON };
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{framing}\r\n\r\n")
    }
}

/// A text of the same length whose JSON is wrong in one place: no parser takes `;` for `:`.
fn spoilt(text: &str) -> String {
    match text.contains("\":") {
        true => text.replacen("\":", "\";", 1),
        false => text.replacen('[', "{", 1),
    }
}
