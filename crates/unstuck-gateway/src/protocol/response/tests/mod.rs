//! Responses of every API, written by hand after its documentation.

mod chat;
mod generate;
mod laws;
mod messages;
mod responses;

use serde_json::Value;

use super::*;

/// Returns the frame kinds and the reader of a stream of these events.
fn stream(endpoint: LlmApiEndpoint, events: &[Value]) -> (Vec<FrameKind>, ResponseReader) {
    let mut reading = ResponseReader::new(endpoint).with_text();
    let frames = events
        .iter()
        .map(|event| reading.read_frame(sse(event).as_bytes()));
    let frames = frames.collect();
    (frames, reading)
}

/// Returns an event in stream form; a bare string is used as it is.
fn sse(event: &Value) -> String {
    match event {
        Value::String(text) => format!("data: {text}\n\n"),
        event => format!("data: {event}\n\n"),
    }
}

fn whole(endpoint: LlmApiEndpoint, body: &Value) -> (FrameKind, ResponseReader) {
    let mut reading = ResponseReader::new(endpoint).with_text();
    let frame = reading.read_body(body.to_string().as_bytes());
    (frame, reading)
}

fn tokens(said: &ResponseSummary) -> Option<(u64, u64, u64)> {
    said.tokens
        .map(|tokens| (tokens.input, tokens.cached, tokens.output))
}

#[test]
fn uninspected_response_is_content_and_always_complete() {
    let mut reading = ResponseReader::new(LlmApiEndpoint::Other);
    assert_eq!(reading.read_frame(b"anything"), FrameKind::Content);
    assert!(reading.is_complete());
    assert_eq!(*reading.summary(), ResponseSummary::default());
}
