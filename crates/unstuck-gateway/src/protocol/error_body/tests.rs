use serde_json::json;

use super::*;
use crate::protocol::{FrameKind, FrameSplitter};

fn limited() -> ErrorDetails<'static> {
    ErrorDetails {
        status: 429,
        code: "rate_limit_timed",
        message: "The limit is reached.",
        retry_after: Some(Duration::from_millis(7500)),
        reset_at: Some(Timestamp::from_millis(1_790_000_000_500)),
    }
}

fn overloaded() -> ErrorDetails<'static> {
    ErrorDetails {
        status: 529,
        code: "server_overloaded",
        message: "No upstream answers.",
        retry_after: None,
        reset_at: None,
    }
}

fn body(protocol: Protocol, trouble: &ErrorDetails<'_>) -> Value {
    let (content_type, body) = error_body(protocol, trouble);
    assert_eq!(content_type, "application/json");
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn anthropic_error_has_the_shape_of_its_api() {
    let ours =
        json!({"kind": "rate_limit_timed", "retryAfter": 7.5, "resetAt": "2026-09-21T14:13:20.5Z"});
    assert_eq!(
        body(Protocol::Anthropic, &limited()),
        json!({"type": "error", "error": {
            "type": "rate_limit_error", "message": "The limit is reached.", "unstuck": ours,
        }})
    );
    let error = &body(Protocol::Anthropic, &overloaded())["error"];
    assert_eq!(error["type"], "overloaded_error");
}

#[test]
fn openai_error_has_the_shape_of_its_api() {
    let error = body(Protocol::OpenAi, &limited())["error"].clone();
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("usage_limit_reached"), &json!("rate_limit_exceeded"))
    );
    assert_eq!(
        (&error["resets_at"], &error["param"]),
        (&json!(1_790_000_001), &Value::Null)
    );
    let error = body(Protocol::OpenAi, &overloaded())["error"].clone();
    assert_eq!(error["code"], "server_is_overloaded");
    assert!(error.get("resets_at").is_none());
}

#[test]
fn gemini_error_has_the_shape_of_its_api() {
    let error = body(Protocol::Gemini, &limited())["error"].clone();
    assert_eq!(
        (&error["code"], &error["status"]),
        (&json!(429), &json!("RESOURCE_EXHAUSTED"))
    );
    let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"});
    assert_eq!(error["details"][1], retry);
    assert_eq!(error["details"][0]["reason"], "RATE_LIMIT_TIMED");
}

/// Returns the frame kinds that a reader sees in our final events.
fn ends(endpoint: LlmApiEndpoint, before: &[&str]) -> (Vec<FrameKind>, ResponseReader) {
    let mut sent = ResponseReader::new(endpoint);
    for frame in before {
        sent.read_frame(frame.as_bytes());
    }
    let event = error_event(&sent, &overloaded());
    let content_type = if sent.is_in_array() {
        "application/json"
    } else {
        "text/event-stream"
    };
    let mut frames = FrameSplitter::new(endpoint, content_type);
    let mut reading = ResponseReader::new(endpoint);
    for bytes in before {
        frames.push(Bytes::copy_from_slice(bytes.as_bytes()));
    }
    frames.push(event);
    let read = frames.map(|frame| reading.read_frame(&frame)).collect();
    (read, reading)
}

#[test]
fn error_event_is_read_as_error_and_not_as_end() {
    for endpoint in LlmApiEndpoint::KNOWN {
        let (frames, reading) = ends(endpoint, &[]);
        assert_eq!(frames, [FrameKind::Error], "{endpoint:?}");
        let error = reading.summary().error.as_deref().unwrap();
        assert!(error.contains("No upstream answers."), "{error}");
        assert_eq!(reading.is_complete(), endpoint == LlmApiEndpoint::Responses);
    }
    assert!(error_event(&ResponseReader::new(LlmApiEndpoint::Other), &overloaded()).is_empty());
}

#[test]
fn open_array_is_closed_after_the_error() {
    let before = ["[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]}"];
    let (frames, reading) = ends(LlmApiEndpoint::Generate, &before);
    assert_eq!(
        frames,
        [FrameKind::Content, FrameKind::Error, FrameKind::End]
    );
    assert!(!reading.is_complete());
}

#[test]
fn failed_response_keeps_its_id_and_sequence() {
    let mut reading = ResponseReader::new(LlmApiEndpoint::Responses);
    reading.read_frame(b"data: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_7\",\"created_at\":5,\"model\":\"m\"}}\n\n");
    reading.read_frame(b"data: {\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"delta\":\"x\"}\n\n");
    let trouble = ErrorDetails {
        code: "rate_limit",
        ..limited()
    };
    let event = String::from_utf8(error_event(&reading, &trouble).into()).unwrap();
    let data = event
        .strip_prefix("event: response.failed\ndata: ")
        .unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["sequence_number"], 5);
    let response = &data["response"];
    assert_eq!(
        (&response["id"], &response["status"]),
        (&json!("resp_7"), &json!("failed"))
    );
    assert_eq!(
        (&response["created_at"], &response["model"]),
        (&json!(5), &json!("m"))
    );
    let error = json!({
        "code": "rate_limit_exceeded", "message": "The limit is reached. Please try again in 7.5s.",
    });
    assert_eq!(response["error"], error);
}

#[test]
fn keep_alive_is_read_as_ping() {
    for endpoint in [
        LlmApiEndpoint::Messages,
        LlmApiEndpoint::Chat,
        LlmApiEndpoint::Responses,
    ] {
        let mut frames = FrameSplitter::new(endpoint, "text/event-stream");
        frames.push(Bytes::from_static(keep_alive(endpoint).unwrap()));
        let mut reading = ResponseReader::new(endpoint);
        let read: Vec<_> = frames.map(|frame| reading.read_frame(&frame)).collect();
        assert_eq!(read, [FrameKind::Ping]);
    }
    assert_eq!(keep_alive(LlmApiEndpoint::Generate), None);
}

#[test]
fn stop_status_is_not_retried_by_any_sdk() {
    for endpoint in LlmApiEndpoint::KNOWN {
        let status = stop_status(endpoint);
        assert!((400..500).contains(&status) && ![408, 409, 429].contains(&status));
    }
}
