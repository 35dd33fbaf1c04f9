//! Builds the HTTP responses of script replies: answers and refusals. Broken ones are in `broken_responses`.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use unstuck_core::Timestamp;

use super::paced_body::{BodyEnd, BodyPiece, PacedBody};
use super::raw_connection::{ConnectionEndedByScript, RawConnection, RawConnectionFault};
use super::state::ServerState;
use crate::protocol::Headers;
use crate::protocol::{
    ChargedTokens, MessageContent, ModelCall, ModelMessage, Protocol, Rejection, RetryAfterHint,
    TextChunkSpec as Cut, estimate_tokens, whole_seconds,
};
use crate::randomness::{RandomDrawPurpose, RequestRng};
use crate::script::{FaultScriptAnswer, FaultScriptReply, ResponsePace, SelectedReply};

pub(super) const EVENTS: &str = "text/event-stream; charset=utf-8";
pub(super) const JSON: &str = "application/json";

/// Text of an answer that is not delivered in full.
const INTERRUPTED_TEXT: &str =
    "This answer is cut off because the connection is lost before it ends.";

/// Text of a truncated answer.
const TRUNCATED_TEXT: &str = "First I would look at the failing test, and then";

const PROXY_ERROR_PAGE: &str = "<html>\n<head><title>502 Bad Gateway</title></head>\n<body>\n<center><h1>502 Bad Gateway</h1></center>\n\
                    <hr><center>nginx</center>\n</body>\n</html>\n";

/// A response with a body that is sent piece by piece.
pub(super) type PacedResponse = Response<PacedBody>;

/// A request with its selected step: everything needed to answer it.
pub(super) struct ReplyContext<'a> {
    pub(super) state: &'a ServerState,
    pub(super) line: &'a Arc<RawConnection>,
    pub(super) protocol: Protocol,
    pub(super) call: &'a ModelCall,
    pub(super) key: &'a str,
    pub(super) number: u64,
    pub(super) now: Timestamp,
    pub(super) chance: RequestRng,
    pub(super) pace: ResponsePace,
}

impl ReplyContext<'_> {
    /// Returns the answer of a step for the request.
    pub(super) async fn reply(
        &self,
        taken: &SelectedReply,
    ) -> Result<PacedResponse, ConnectionEndedByScript> {
        if let Some(rejection) = self.rejection(taken) {
            let refused = self.refusal(&rejection);
            return Ok(match &*taken.reply {
                FaultScriptReply::Status { headers, .. } => with_script_headers(refused, headers),
                _ => refused,
            });
        }
        let content = match &*taken.reply {
            FaultScriptReply::Answer(answer) => {
                let answered = self.answer(answer).await;
                return Ok(with_script_headers(answered, &answer.headers));
            }
            FaultScriptReply::Html { status } => {
                return Ok(proxy_error_page(status.unwrap_or(502)));
            }
            FaultScriptReply::Close => return Err(self.end_connection(RawConnectionFault::Close)),
            FaultScriptReply::Refusal | FaultScriptReply::ContentFilter => MessageContent::Refusal,
            FaultScriptReply::Empty => MessageContent::Empty,
            FaultScriptReply::MaxTokens { text } => {
                MessageContent::Truncated(text.clone().unwrap_or_else(|| TRUNCATED_TEXT.to_owned()))
            }
            FaultScriptReply::ToolCall(call) => MessageContent::ToolCall {
                name: call.name.clone(),
                input: call.input.clone(),
            },
            FaultScriptReply::ToolFailure(failure) => MessageContent::ToolCall {
                name: crate::scripted_agent::FAILING_TOOL.to_owned(),
                input: json!({"stderr": failure.stderr, "exit_code": failure.exit_code}),
            },
            broken => {
                self.first_byte().await;
                return self.broken_response(broken);
            }
        };
        self.first_byte().await;
        Ok(self.full_response(&self.message(content)))
    }

    /// Returns the refusal of a reply, if it is one.
    fn rejection(&self, taken: &SelectedReply) -> Option<Rejection> {
        Some(match &*taken.reply {
            FaultScriptReply::RateLimit { retry_after } => Rejection::RateLimit {
                retry_after: *retry_after,
            },
            FaultScriptReply::RateLimitAs { form, wait } => {
                Rejection::StatedRateLimit(RetryAfterHint {
                    form: *form,
                    time: *wait,
                    now: self.now,
                })
            }
            FaultScriptReply::UsageLimit(_) => {
                let reset = taken.reset.unwrap_or(self.now);
                let seconds = whole_seconds(reset.since(self.now));
                Rejection::UsageLimit { reset, seconds }
            }
            FaultScriptReply::Quota => Rejection::Quota,
            FaultScriptReply::Overloaded => Rejection::Overloaded,
            FaultScriptReply::ServerError => Rejection::ServerError,
            FaultScriptReply::Status {
                code,
                retry_after,
                message,
                ..
            } => Rejection::Status {
                code: *code,
                retry_after: *retry_after,
                message: message.clone(),
            },
            FaultScriptReply::Auth => Rejection::Auth,
            FaultScriptReply::AuthExpired => Rejection::AuthExpired,
            FaultScriptReply::ContextLimit => Rejection::ContextLimit,
            FaultScriptReply::ModelNotFound => Rejection::ModelNotFound,
            // Gemini blocks the answer instead.
            FaultScriptReply::ContentFilter if self.protocol != Protocol::Gemini => {
                Rejection::ContentFilter
            }
            FaultScriptReply::PrefillRejected => Rejection::Prefill,
            _ => return None,
        })
    }

    async fn answer(&self, answer: &FaultScriptAnswer) -> PacedResponse {
        if !answer.delay.is_zero() {
            tokio::time::sleep(answer.delay).await;
        }
        self.first_byte().await;
        let mut message = self.message(MessageContent::Text(answer.text.clone()));
        let counted = message.usage;
        message.usage = ChargedTokens {
            input: answer.input_tokens.unwrap_or(counted.input),
            output: answer.output_tokens.unwrap_or(counted.output),
            cache_read: answer.cache_read_tokens,
            cache_write: answer.cache_write_tokens,
        };
        self.full_response(&message)
    }

    async fn first_byte(&self) {
        let wait = self
            .pace
            .first_byte
            .draw(self.chance, RandomDrawPurpose::FirstByte, 0);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    pub(super) fn interrupted_message(&self) -> ModelMessage {
        self.message(MessageContent::Text(INTERRUPTED_TEXT.to_owned()))
    }

    fn message(&self, content: MessageContent) -> ModelMessage {
        let pieces = Cut {
            count: self.pace.chunks,
            bytes: self.pace.chunk_bytes,
        };
        let content = match content {
            MessageContent::Text(text) => MessageContent::Text(pieces.resize(text)),
            other => other,
        };
        let output = match &content {
            MessageContent::Text(text) | MessageContent::Truncated(text) => estimate_tokens(text),
            MessageContent::ToolCall { input, .. } => estimate_tokens(&input.to_string()),
            MessageContent::Refusal | MessageContent::Empty => 1,
        };
        ModelMessage {
            number: self.number,
            model: self.call.model.clone(),
            content,
            usage: ChargedTokens {
                input: self.call.estimated_tokens(),
                output,
                ..ChargedTokens::default()
            },
            pieces,
        }
    }

    pub(super) fn refusal(&self, rejection: &Rejection) -> PacedResponse {
        refusal(self.protocol, rejection, &self.call.model, self.number)
    }

    pub(super) fn content_type(&self) -> &'static str {
        if self.call.wants_stream { EVENTS } else { JSON }
    }

    /// Returns the complete answer.
    fn full_response(&self, message: &ModelMessage) -> PacedResponse {
        let output = message.usage.output;
        self.state.with_script_run(|play| {
            if let Some(buckets) = &mut play.buckets {
                buckets.charge(self.key, output, self.state.now());
            }
        });
        if self.call.wants_stream {
            let frames = self.protocol.stream(message, self.call);
            let pieces = self.paced_frames(frames);
            paced_response(
                StatusCode::OK,
                EVENTS,
                PacedBody::new(pieces, BodyEnd::Complete),
            )
        } else {
            json_response(StatusCode::OK, &self.protocol.document(message))
        }
    }

    /// Returns the frames at the step's pace; the opening frames of the stream are sent at once.
    pub(super) fn paced_frames(&self, frames: Vec<String>) -> Vec<BodyPiece> {
        let opening = self.protocol.opening_frames();
        let wait = |index: usize| {
            let between = u64::try_from(index).unwrap_or(u64::MAX);
            self.pace
                .between
                .draw(self.chance, RandomDrawPurpose::Between, between)
        };
        let piece = |(index, frame): (usize, String)| BodyPiece {
            wait: if index > opening {
                wait(index)
            } else {
                Default::default()
            },
            ..BodyPiece::from(frame)
        };
        frames.into_iter().enumerate().map(piece).collect()
    }

    pub(super) fn end_connection(&self, takeover: RawConnectionFault) -> ConnectionEndedByScript {
        self.line.take_over(takeover);
        ConnectionEndedByScript
    }
}

fn proxy_error_page(status: u16) -> PacedResponse {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    paced_response(
        status,
        "text/html",
        PacedBody::new([PROXY_ERROR_PAGE], BodyEnd::Complete),
    )
}

pub(super) fn refusal(
    protocol: Protocol,
    rejection: &Rejection,
    model: &str,
    number: u64,
) -> PacedResponse {
    let refused = protocol.refusal_response(rejection, model, number);
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    with_headers(json_response(status, &refused.body), &refused.headers)
}

/// Adds headers to an answer, unless it already has one of that name.
pub(super) fn with_headers(mut answered: PacedResponse, headers: &Headers) -> PacedResponse {
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            answered.headers_mut().entry(*name).or_insert(value);
        }
    }
    answered
}

/// Adds the script's headers to an answer; invalid ones are skipped.
fn with_script_headers(
    mut answered: PacedResponse,
    headers: &BTreeMap<String, String>,
) -> PacedResponse {
    for (name, value) in headers {
        let pair = (name.parse::<HeaderName>(), HeaderValue::from_str(value));
        if let (Ok(name), Ok(value)) = pair {
            answered.headers_mut().insert(name, value);
        }
    }
    answered
}

pub(super) fn json_response(status: StatusCode, body: &Value) -> PacedResponse {
    paced_response(
        status,
        JSON,
        PacedBody::new([body.to_string()], BodyEnd::Complete),
    )
}

pub(super) fn paced_response(
    status: StatusCode,
    content_type: &'static str,
    body: PacedBody,
) -> PacedResponse {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
