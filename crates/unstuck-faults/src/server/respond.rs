//! From a request to its answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::body::{End, Pieces};
use super::seen::Request;
use super::{State, locked};
use crate::clock;
use crate::protocol::{Call, Content, Message, Protocol, Rejection, Route, count_tokens, models};
use crate::script::{Answer, Reply, Taken};

/// The longest request that is read; the real APIs refuse longer ones too.
const REQUEST_BYTES: usize = 32 * 1024 * 1024;

const EVENTS: &str = "text/event-stream; charset=utf-8";
const JSON: &str = "application/json";

/// The text of an answer that does not arrive in full.
const LOST: &str =
    "This answer would have gone on for a while, but its connection was lost on the way.";

const PAGE: &str = "<html>\n<head><title>502 Bad Gateway</title></head>\n<body>\n<center><h1>502 Bad Gateway</h1></center>\n\
                    <hr><center>nginx</center>\n</body>\n</html>\n";

type Answered = Response<Pieces>;

/// A call that has its step: everything that an answer is made of.
struct Asked {
    protocol: Protocol,
    call: Call,
    number: u64,
}

/// Answers a request.
pub(super) async fn respond(
    state: Arc<State>,
    request: hyper::Request<Incoming>,
) -> Result<Answered, Infallible> {
    let route = Route::of(request.method(), request.uri(), request.headers());
    Ok(match route {
        Route::Generate(protocol) => generate(&state, protocol, request).await,
        Route::CountTokens(protocol) => {
            let uri = request.uri().clone();
            note(&state, &request);
            let body = read(request).await.unwrap_or_default();
            let call = Call::read(protocol, &uri, &body);
            document(StatusCode::OK, &count_tokens(protocol, &call))
        }
        Route::Probe => {
            note(&state, &request);
            document(StatusCode::OK, &json!({}))
        }
        Route::Models(protocol) => {
            note(&state, &request);
            document(StatusCode::OK, &models(protocol))
        }
        Route::Unknown(protocol) => {
            let number = note(&state, &request);
            refused(protocol, &Rejection::NoSuchPath, "", number)
        }
    })
}

fn note(state: &State, request: &hyper::Request<Incoming>) -> u64 {
    locked(&state.seen).record(seen(request))
}

fn seen(request: &hyper::Request<Incoming>) -> Request {
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    Request::new(clock::now(), method.as_str(), uri, headers)
}

async fn read(request: hyper::Request<Incoming>) -> Result<Value, Rejection> {
    let body = Limited::new(request.into_body(), REQUEST_BYTES);
    let bytes = body.collect().await.map_err(|_| Rejection::TooLarge)?;
    serde_json::from_slice(&bytes.to_bytes()).map_err(|_| Rejection::NotJson)
}

async fn generate(
    state: &State,
    protocol: Protocol,
    request: hyper::Request<Incoming>,
) -> Answered {
    let (seen, uri) = (seen(&request), request.uri().clone());
    let body = match read(request).await {
        Ok(body) => body,
        Err(rejection) => {
            let number = locked(&state.seen).record(seen);
            return refused(protocol, &rejection, "", number);
        }
    };
    let call = Call::read(protocol, &uri, &body);
    let taken = locked(&state.cursor).take(&call.model, &call.prompt, seen.at);
    let mut seen = seen.asking(&call);
    seen.reply = taken.as_ref().map(|taken| taken.reply.name());
    let number = locked(&state.seen).record(seen);
    let asked = Asked {
        protocol,
        call,
        number,
    };
    match taken {
        Some(taken) => asked.reply(taken).await,
        None => asked.refused(&Rejection::NoStep),
    }
}

impl Asked {
    async fn reply(&self, taken: Taken) -> Answered {
        let reset = taken.reset;
        match taken.reply {
            Reply::Answer(answer) => self.answer(answer).await,
            Reply::RateLimit { retry_after } => self.refused(&Rejection::RateLimit { retry_after }),
            Reply::UsageLimit(_) => {
                let now = clock::now();
                let reset = reset.unwrap_or(now);
                // Rounded up: whoever waits this long must not come too early.
                let seconds = u64::try_from(reset.since(now).as_millis().div_ceil(1000));
                self.refused(&Rejection::UsageLimit {
                    reset,
                    seconds: seconds.unwrap_or(u64::MAX),
                })
            }
            Reply::Quota => self.refused(&Rejection::Quota),
            Reply::Overloaded => self.refused(&Rejection::Overloaded),
            Reply::ServerError => self.refused(&Rejection::ServerError),
            Reply::Auth => self.refused(&Rejection::Auth),
            Reply::ContextLimit => self.refused(&Rejection::ContextLimit),
            Reply::ModelNotFound => self.refused(&Rejection::ModelNotFound),
            Reply::Refusal => self.whole(&self.message(Content::Refusal)),
            Reply::Empty => self.whole(&self.message(Content::Nothing)),
            Reply::Hang => std::future::pending().await,
            Reply::Stall => answered(
                StatusCode::OK,
                self.content_type(),
                Pieces::new([""; 0], End::Silence),
            ),
            Reply::Cut => self.cut(),
            Reply::StreamError => self.stream_error(),
            Reply::Malformed => self.malformed(),
            Reply::Html { status } => page(status.unwrap_or(502)),
            Reply::ToolFailure(failure) => self.whole(&self.message(Content::ToolCall {
                name: crate::agent::FAILING_TOOL,
                input: json!({"stderr": failure.stderr, "exit_code": failure.exit_code}),
            })),
        }
    }

    async fn answer(&self, answer: Answer) -> Answered {
        if answer.delay > Duration::ZERO {
            tokio::time::sleep(answer.delay).await;
        }
        let message = self.message(Content::Text(answer.text));
        self.whole(&Message {
            input_tokens: answer.input_tokens.unwrap_or(message.input_tokens),
            output_tokens: answer.output_tokens.unwrap_or(message.output_tokens),
            ..message
        })
    }

    fn message(&self, content: Content) -> Message {
        let output_tokens = match &content {
            Content::Text(text) => crate::protocol::tokens(text),
            _ => 1,
        };
        Message {
            number: self.number,
            model: self.call.model.clone(),
            content,
            input_tokens: self.call.tokens(),
            output_tokens,
        }
    }

    fn refused(&self, rejection: &Rejection) -> Answered {
        refused(self.protocol, rejection, &self.call.model, self.number)
    }

    fn content_type(&self) -> &'static str {
        if self.call.streams { EVENTS } else { JSON }
    }

    fn whole(&self, message: &Message) -> Answered {
        if self.call.streams {
            let frames = self.protocol.stream(message, &self.call);
            answered(StatusCode::OK, EVENTS, Pieces::new(frames, End::Complete))
        } else {
            document(StatusCode::OK, &self.protocol.document(message))
        }
    }

    fn cut(&self) -> Answered {
        let message = self.message(Content::Text(LOST.to_owned()));
        if self.call.streams {
            let mut frames = self.protocol.stream(&message, &self.call);
            frames.truncate(frames.len().div_ceil(2));
            return answered(StatusCode::OK, EVENTS, Pieces::new(frames, End::Cut));
        }
        let text = self.protocol.document(&message).to_string();
        let length = text.len();
        let half = Bytes::from(text).slice(..length / 2);
        let mut response = answered(StatusCode::OK, JSON, Pieces::new([half], End::Cut));
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
        response
    }

    fn stream_error(&self) -> Answered {
        if !self.call.streams {
            return self.refused(&Rejection::Overloaded);
        }
        let message = self.message(Content::Text(LOST.to_owned()));
        let overloaded = &Rejection::Overloaded;
        let frames = self
            .protocol
            .broken_stream(&message, &self.call, overloaded);
        answered(StatusCode::OK, EVENTS, Pieces::new(frames, End::Complete))
    }

    /// A first frame or document that breaks off inside its JSON, properly ended by HTTP.
    fn malformed(&self) -> Answered {
        let message = self.message(Content::Text(LOST.to_owned()));
        let text = if self.call.streams {
            self.protocol.stream(&message, &self.call).swap_remove(0)
        } else {
            self.protocol.document(&message).to_string()
        };
        let half = text[..text.floor_char_boundary(text.len() * 2 / 3)].to_owned();
        let ending = if self.call.streams { "\n\n" } else { "" };
        let body = Pieces::new([half + ending], End::Complete);
        answered(StatusCode::OK, self.content_type(), body)
    }
}

fn page(status: u16) -> Answered {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    answered(status, "text/html", Pieces::new([PAGE], End::Complete))
}

fn refused(protocol: Protocol, rejection: &Rejection, model: &str, number: u64) -> Answered {
    let refused = protocol.refuse(rejection, model, number);
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = document(status, &refused.body);
    for (name, value) in refused.headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn document(status: StatusCode, body: &Value) -> Answered {
    answered(status, JSON, Pieces::new([body.to_string()], End::Complete))
}

fn answered(status: StatusCode, content_type: &'static str, body: Pieces) -> Answered {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let content_type = hyper::header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
