//! What a reply of the script is over HTTP: answers and refusals. Broken ones are in `trouble`.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use unstuck_core::Timestamp;

use super::body::{End, Piece, Pieces};
use super::line::{Line, Severed, Takeover};
use super::state::State;
use crate::chance::{Chance, Purpose};
use crate::protocol::Headers;
use crate::protocol::{
    Call, Content, Message, Pieces as Cut, Protocol, Rejection, Usage, Wait, tokens, whole_seconds,
};
use crate::script::{Answer, Pace, Reply, Taken};

pub(super) const EVENTS: &str = "text/event-stream; charset=utf-8";
pub(super) const JSON: &str = "application/json";

/// The text of an answer that does not arrive in full.
const LOST: &str =
    "This answer would have gone on for a while, but its connection was lost on the way.";

/// The text of an answer that is cut short.
const SHORT: &str = "First I would look at the failing test, and then";

const PAGE: &str = "<html>\n<head><title>502 Bad Gateway</title></head>\n<body>\n<center><h1>502 Bad Gateway</h1></center>\n\
                    <hr><center>nginx</center>\n</body>\n</html>\n";

pub(super) type Answered = Response<Pieces>;

/// A call that has its step: everything that an answer is made of.
pub(super) struct Asked<'a> {
    pub(super) state: &'a State,
    pub(super) line: &'a Arc<Line>,
    pub(super) protocol: Protocol,
    pub(super) call: &'a Call,
    pub(super) key: &'a str,
    pub(super) number: u64,
    pub(super) now: Timestamp,
    pub(super) chance: Chance,
    pub(super) pace: Pace,
}

impl Asked<'_> {
    /// The answer that a step has for the call.
    pub(super) async fn reply(&self, taken: &Taken) -> Result<Answered, Severed> {
        if let Some(rejection) = self.rejection(taken) {
            let refused = self.refused(&rejection);
            return Ok(match &*taken.reply {
                Reply::Status { headers, .. } => with_further(refused, headers),
                _ => refused,
            });
        }
        let content = match &*taken.reply {
            Reply::Answer(answer) => {
                let answered = self.answer(answer).await;
                return Ok(with_further(answered, &answer.headers));
            }
            Reply::Html { status } => return Ok(page(status.unwrap_or(502))),
            Reply::Close => return Err(self.severed(Takeover::Close)),
            Reply::Refusal | Reply::ContentFilter => Content::Refusal,
            Reply::Empty => Content::Nothing,
            Reply::MaxTokens { text } => {
                Content::CutShort(text.clone().unwrap_or_else(|| SHORT.to_owned()))
            }
            Reply::ToolCall(call) => Content::ToolCall {
                name: call.name.clone(),
                input: call.input.clone(),
            },
            Reply::ToolFailure(failure) => Content::ToolCall {
                name: crate::agent::FAILING_TOOL.to_owned(),
                input: json!({"stderr": failure.stderr, "exit_code": failure.exit_code}),
            },
            broken => {
                self.first_byte().await;
                return self.trouble(broken);
            }
        };
        self.first_byte().await;
        Ok(self.whole(&self.message(content)))
    }

    /// The refusal that a reply is, if it is one.
    fn rejection(&self, taken: &Taken) -> Option<Rejection> {
        Some(match &*taken.reply {
            Reply::RateLimit { retry_after } => Rejection::RateLimit {
                retry_after: *retry_after,
            },
            Reply::RateLimitAs { form, wait } => Rejection::Limited(Wait {
                form: *form,
                time: *wait,
                now: self.now,
            }),
            Reply::UsageLimit(_) => {
                let reset = taken.reset.unwrap_or(self.now);
                let seconds = whole_seconds(reset.since(self.now));
                Rejection::UsageLimit { reset, seconds }
            }
            Reply::Quota => Rejection::Quota,
            Reply::Overloaded => Rejection::Overloaded,
            Reply::ServerError => Rejection::ServerError,
            Reply::Status {
                code,
                retry_after,
                message,
                ..
            } => Rejection::Status {
                code: *code,
                retry_after: *retry_after,
                message: message.clone(),
            },
            Reply::Auth => Rejection::Auth,
            Reply::AuthExpired => Rejection::AuthExpired,
            Reply::ContextLimit => Rejection::ContextLimit,
            Reply::ModelNotFound => Rejection::ModelNotFound,
            // Gemini blocks the answer instead.
            Reply::ContentFilter if self.protocol != Protocol::Gemini => Rejection::ContentFilter,
            Reply::PrefillRejected => Rejection::Prefill,
            _ => return None,
        })
    }

    async fn answer(&self, answer: &Answer) -> Answered {
        if !answer.delay.is_zero() {
            tokio::time::sleep(answer.delay).await;
        }
        self.first_byte().await;
        let mut message = self.message(Content::Text(answer.text.clone()));
        let counted = message.usage;
        message.usage = Usage {
            input: answer.input_tokens.unwrap_or(counted.input),
            output: answer.output_tokens.unwrap_or(counted.output),
            cache_read: answer.cache_read_tokens,
            cache_write: answer.cache_write_tokens,
        };
        self.whole(&message)
    }

    async fn first_byte(&self) {
        let wait = self
            .pace
            .first_byte
            .draw(self.chance, Purpose::FirstByte, 0);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    pub(super) fn lost(&self) -> Message {
        self.message(Content::Text(LOST.to_owned()))
    }

    fn message(&self, content: Content) -> Message {
        let pieces = Cut {
            count: self.pace.chunks,
            bytes: self.pace.chunk_bytes,
        };
        let content = match content {
            Content::Text(text) => Content::Text(pieces.stretched(text)),
            other => other,
        };
        let output = match &content {
            Content::Text(text) | Content::CutShort(text) => tokens(text),
            Content::ToolCall { input, .. } => tokens(&input.to_string()),
            Content::Refusal | Content::Nothing => 1,
        };
        Message {
            number: self.number,
            model: self.call.model.clone(),
            content,
            usage: Usage {
                input: self.call.tokens(),
                output,
                ..Usage::default()
            },
            pieces,
        }
    }

    pub(super) fn refused(&self, rejection: &Rejection) -> Answered {
        refused(self.protocol, rejection, &self.call.model, self.number)
    }

    pub(super) fn content_type(&self) -> &'static str {
        if self.call.streams { EVENTS } else { JSON }
    }

    /// The answer in full.
    fn whole(&self, message: &Message) -> Answered {
        let output = message.usage.output;
        self.state.play(|play| {
            if let Some(buckets) = &mut play.buckets {
                buckets.charge(self.key, output, self.state.now());
            }
        });
        if self.call.streams {
            let frames = self.protocol.stream(message, self.call);
            let pieces = self.paced(frames);
            answered(StatusCode::OK, EVENTS, Pieces::new(pieces, End::Complete))
        } else {
            document(StatusCode::OK, &self.protocol.document(message))
        }
    }

    /// The frames at the step's pace; those that open the stream come at once.
    pub(super) fn paced(&self, frames: Vec<String>) -> Vec<Piece> {
        let opening = self.protocol.opening_frames();
        let wait = |index: usize| {
            let between = u64::try_from(index).unwrap_or(u64::MAX);
            self.pace
                .between
                .draw(self.chance, Purpose::Between, between)
        };
        let piece = |(index, frame): (usize, String)| Piece {
            wait: if index > opening {
                wait(index)
            } else {
                Default::default()
            },
            ..Piece::from(frame)
        };
        frames.into_iter().enumerate().map(piece).collect()
    }

    pub(super) fn severed(&self, takeover: Takeover) -> Severed {
        self.line.take_over(takeover);
        Severed
    }
}

fn page(status: u16) -> Answered {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    answered(status, "text/html", Pieces::new([PAGE], End::Complete))
}

pub(super) fn refused(
    protocol: Protocol,
    rejection: &Rejection,
    model: &str,
    number: u64,
) -> Answered {
    let refused = protocol.refuse(rejection, model, number);
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    with_headers(document(status, &refused.body), &refused.headers)
}

/// The answer with these headers, unless it has its own of that name.
pub(super) fn with_headers(mut answered: Answered, headers: &Headers) -> Answered {
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            answered.headers_mut().entry(*name).or_insert(value);
        }
    }
    answered
}

/// The answer with the headers that the script has for it; what is no header is left out.
fn with_further(mut answered: Answered, headers: &BTreeMap<String, String>) -> Answered {
    for (name, value) in headers {
        let pair = (name.parse::<HeaderName>(), HeaderValue::from_str(value));
        if let (Ok(name), Ok(value)) = pair {
            answered.headers_mut().insert(name, value);
        }
    }
    answered
}

pub(super) fn document(status: StatusCode, body: &Value) -> Answered {
    answered(status, JSON, Pieces::new([body.to_string()], End::Complete))
}

pub(super) fn answered(status: StatusCode, content_type: &'static str, body: Pieces) -> Answered {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
