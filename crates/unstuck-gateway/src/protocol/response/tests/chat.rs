use serde_json::{Value, json};

use super::*;

fn chunk(delta: Value, finish: Value) -> Value {
    json!({
        "id": "c", "object": "chat.completion.chunk", "model": "gpt-6-2026", "usage": null,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })
}

fn usage() -> Value {
    json!({
        "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 64},
    })
}

pub(super) fn answer() -> Vec<Value> {
    let call = |call: Value| chunk(json!({"tool_calls": [call]}), Value::Null);
    vec![
        chunk(
            json!({"role": "assistant", "content": "", "refusal": null}),
            Value::Null,
        ),
        chunk(json!({"content": "I "}), Value::Null),
        chunk(json!({"content": "look."}), Value::Null),
        call(
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}}),
        ),
        call(json!({"index": 0, "function": {"arguments": "{\"path\":"}})),
        call(
            json!({"index": 1, "id": "b", "type": "function", "function": {"name": "list", "arguments": "{}"}}),
        ),
        call(json!({"index": 0, "function": {"arguments": " \"a\"}"}})),
        chunk(json!({}), json!("tool_calls")),
        json!({"id": "c", "model": "gpt-6-2026", "choices": [], "usage": usage()}),
        json!("[DONE]"),
    ]
}

#[test]
fn stream_and_document_give_the_same_summary() {
    use FrameKind::{Content, End, Lifecycle};
    let (frames, streamed) = stream(LlmApiEndpoint::Chat, &answer());
    #[rustfmt::skip]
    assert_eq!(frames, [
        Lifecycle, Content, Content, Content, Content, Content, Content, Lifecycle, Lifecycle, End,
    ]);
    let document = json!({
        "model": "gpt-6-2026", "usage": usage(), "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
                {"id": "b", "type": "function", "function": {"name": "list", "arguments": "{}"}},
            ],
        }}],
    });
    let (frame, once) = whole(LlmApiEndpoint::Chat, &document);
    assert_eq!(frame, FrameKind::Content);
    assert_eq!(streamed.summary(), once.summary());
    assert!(streamed.is_complete() && once.is_complete());
    let said = once.summary();
    assert_eq!(tokens(said), Some((36, 64, 20)));
    assert_eq!(
        (said.finish.as_ref(), said.calls.len()),
        (Some(&FinishReason::ToolUse), 2)
    );
}

#[test]
fn end_needs_finish_reason_and_marker() {
    let events = answer();
    let without_done = &events[..events.len() - 1];
    assert!(!stream(LlmApiEndpoint::Chat, without_done).1.is_complete());
    let without_reason = [events[1].clone(), json!("[DONE]")];
    let (frames, reading) = stream(LlmApiEndpoint::Chat, &without_reason);
    assert_eq!(frames, [FrameKind::Content, FrameKind::End]);
    assert!(!reading.is_complete());
}

#[test]
fn error_inside_a_200_is_kept() {
    let error = json!({"code": 429, "message": "Rate limit exceeded"});
    let mut chunk = chunk(json!({"content": ""}), json!("error"));
    chunk["error"] = error.clone();
    let (frames, reading) = stream(LlmApiEndpoint::Chat, &[chunk]);
    assert_eq!(frames, [FrameKind::Error]);
    assert_eq!(
        reading.summary().error.as_deref(),
        Some(&*error.to_string())
    );
    let body = json!({"choices": [{"message": {"content": null}, "finish_reason": "stop"}], "error": error});
    assert_eq!(whole(LlmApiEndpoint::Chat, &body).0, FrameKind::Error);
}

#[test]
fn refusal_is_kept_at_an_ordinary_end() {
    let events = [
        chunk(json!({"refusal": "I can't."}), Value::Null),
        chunk(json!({}), json!("stop")),
        json!("[DONE]"),
    ];
    let (frames, reading) = stream(LlmApiEndpoint::Chat, &events);
    assert_eq!(
        frames,
        [FrameKind::Content, FrameKind::Lifecycle, FrameKind::End]
    );
    assert_eq!(reading.summary().finish, Some(FinishReason::Refusal));
    assert!(!reading.summary().is_empty());
}

#[test]
fn tokens_are_unknown_without_usage() {
    let (_, reading) = stream(LlmApiEndpoint::Chat, &answer()[..3]);
    assert_eq!(reading.summary().tokens, None);
}

#[test]
fn reasoning_is_content_but_not_text() {
    let event = chunk(json!({"reasoning_content": "Hm."}), Value::Null);
    let (frames, reading) = stream(LlmApiEndpoint::Chat, &[event]);
    assert_eq!(
        (&frames[..], reading.summary().text_bytes),
        (&[FrameKind::Content][..], 0)
    );
}

#[test]
fn comment_is_a_ping() {
    let mut reading = ResponseReader::new(LlmApiEndpoint::Chat);
    for frame in [
        ": OPENROUTER PROCESSING\n\n",
        "\n",
        "retry: 3\r\n\r\n",
        "data:\n\n",
    ] {
        assert_eq!(reading.read_frame(frame.as_bytes()), FrameKind::Ping);
    }
}

#[test]
fn json_state_is_known_at_the_end() {
    let judge = |text: &str| {
        let events = [
            chunk(json!({"content": text}), Value::Null),
            chunk(json!({}), json!("stop")),
            json!("[DONE]"),
        ];
        let (_, before) = stream(LlmApiEndpoint::Chat, &events[..2]);
        assert_eq!(before.summary().json, JsonValidity::Unknown);
        let (_, reading) = stream(LlmApiEndpoint::Chat, &events);
        assert_eq!(reading.text(), Some(text));
        reading.summary().json
    };
    assert_eq!(judge("{\"a\": [1]}\n"), JsonValidity::Valid);
    assert_eq!(judge("Sure! {\"a\":1}"), JsonValidity::Invalid);
    assert_eq!(judge("{\"a\":"), JsonValidity::Invalid);
    assert_eq!(judge(""), JsonValidity::Unknown);
    let mut unkept = ResponseReader::new(LlmApiEndpoint::Chat);
    unkept.read_body(br#"{"choices":[{"message":{"content":"{"},"finish_reason":"stop"}]}"#);
    assert_eq!(
        (unkept.text(), unkept.summary().json),
        (None, JsonValidity::Unknown)
    );
}
