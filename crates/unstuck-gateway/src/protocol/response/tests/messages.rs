use serde_json::{Value, json};

use super::*;

pub(super) fn answer() -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [],
            "stop_reason": null, "usage": {
                "input_tokens": 10, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000, "output_tokens": 1,
            },
        }}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "xx"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I "}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "look.\n"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t", "name": "read", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"path\": \"a "}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "b\"}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "u", "name": "list", "input": {}}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 42}}),
        json!({"type": "message_stop"}),
    ]
}

fn document() -> Value {
    json!({
        "type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "xx"},
            {"type": "text", "text": "I look.\n"},
            {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a b"}},
            {"type": "tool_use", "id": "u", "name": "list", "input": {}},
        ],
        "usage": {
            "input_tokens": 10, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000, "output_tokens": 42,
        },
    })
}

#[test]
fn stream_and_document_give_the_same_summary() {
    use FrameKind::{Content, End, Lifecycle, Ping};
    let (frames, streamed) = stream(LlmApiEndpoint::Messages, &answer());
    #[rustfmt::skip]
    assert_eq!(frames, [
        Lifecycle, Ping, Lifecycle, Content, Content, Lifecycle, Lifecycle, Content, Content, Lifecycle,
        Content, Lifecycle, Content, Content, Lifecycle, Content, Lifecycle, Lifecycle, End,
    ]);
    let (frame, once) = whole(LlmApiEndpoint::Messages, &document());
    assert_eq!(frame, FrameKind::Content);
    assert_eq!(streamed.summary(), once.summary());
    assert!(streamed.is_complete() && once.is_complete());
    let said = once.summary();
    assert_eq!(tokens(said), Some((110, 1000, 42)));
    assert_eq!((said.cache_written, said.text_bytes), (100, 8));
    assert_eq!(said.finish, Some(FinishReason::ToolUse));
    assert_eq!(said.model.as_deref(), Some("claude-opus-5-5"));
    assert_eq!((said.calls.len(), &*said.calls[0].name), (2, "read"));
}

#[test]
fn event_name_is_optional() {
    let mut reading = ResponseReader::new(LlmApiEndpoint::Messages);
    let frame = b"event: content_block_delta\r\ndata: {\"type\":\"content_block_delta\",\r\ndata: \"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\r\n\r\n";
    assert_eq!(reading.read_frame(frame), FrameKind::Content);
    assert_eq!(reading.summary().text_bytes, 1);
}

#[test]
fn error_within_a_stream_is_kept_and_is_not_the_end() {
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    let mut events = answer()[..8].to_vec();
    events.push(json!({"type": "error", "error": error}));
    let (frames, reading) = stream(LlmApiEndpoint::Messages, &events);
    assert_eq!(frames.last(), Some(&FrameKind::Error));
    assert_eq!(
        reading.summary().error.as_deref(),
        Some(&*error.to_string())
    );
    assert!(!reading.is_complete());
}

#[test]
fn error_in_a_document_is_kept() {
    let body = json!({"type": "error", "error": {"type": "api_error", "message": "x"}});
    let (frame, reading) = whole(LlmApiEndpoint::Messages, &body);
    assert_eq!((frame, reading.is_complete()), (FrameKind::Error, false));
    assert!(
        reading
            .summary()
            .error
            .as_deref()
            .is_some_and(|error| error.contains("api_error"))
    );
}

#[test]
fn every_stop_reason_is_mapped() {
    let cases = [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::MaxTokens),
        ("refusal", FinishReason::Refusal),
        ("pause_turn", FinishReason::Other("pause_turn".into())),
    ];
    for (reason, finish) in cases {
        let event = json!({"type": "message_delta", "delta": {"stop_reason": reason}});
        let (_, reading) = stream(LlmApiEndpoint::Messages, &[event]);
        assert_eq!(reading.summary().finish, Some(finish));
    }
}

#[test]
fn empty_response_is_an_end() {
    let body = json!({"type": "message", "content": [], "stop_reason": "end_turn"});
    let (frame, reading) = whole(LlmApiEndpoint::Messages, &body);
    assert_eq!((frame, reading.is_complete()), (FrameKind::End, true));
    assert!(reading.summary().is_empty());
}

#[test]
fn unknown_additions_are_ignored() {
    let events = [
        json!({"type": "message_hint", "x": 1}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "hologram"}}),
    ];
    let (frames, _) = stream(LlmApiEndpoint::Messages, &events);
    assert_eq!(frames, [FrameKind::Lifecycle, FrameKind::Content]);
}
