use serde_json::{Value, json};

use super::*;

fn chunk(parts: Value, finish: Value) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if !finish.is_null() {
        candidate["finishReason"] = finish;
    }
    json!({
        "candidates": [candidate], "modelVersion": "gemini-3-pro",
        "usageMetadata": {
            "promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 5, "thoughtsTokenCount": 7,
        },
    })
}

pub(super) fn answer() -> Vec<Value> {
    vec![
        chunk(json!([{"text": "Hm.", "thought": true}]), Value::Null),
        chunk(json!([{"text": "I "}]), Value::Null),
        chunk(
            json!([{"text": "look."}, {"functionCall": {"name": "read", "args": {"path": "a"}}}]),
            Value::Null,
        ),
        chunk(json!([{"text": ""}]), json!("STOP")),
    ]
}

#[test]
fn stream_document_and_array_give_the_same_summary() {
    use FrameKind::{Content, End};
    let (frames, streamed) = stream(LlmApiEndpoint::Generate, &answer());
    assert_eq!(frames, [Content, Content, Content, End]);
    let parts = json!([
        {"text": "Hm.", "thought": true}, {"text": "I look."}, {"functionCall": {"name": "read", "args": {"path": "a"}}},
    ]);
    for body in [chunk(parts, json!("STOP")), json!(answer())] {
        let (frame, once) = whole(LlmApiEndpoint::Generate, &body);
        assert_eq!(frame, Content);
        assert_eq!(streamed.summary(), once.summary());
        assert!(once.is_complete());
    }
    let said = streamed.summary();
    assert!(streamed.is_complete());
    assert_eq!(tokens(said), Some((40, 60, 12)));
    assert_eq!(
        (said.text_bytes, said.finish.as_ref()),
        (7, Some(&FinishReason::ToolUse))
    );
}

#[test]
fn last_piece_may_contain_content_and_the_end() {
    let (frames, reading) = stream(
        LlmApiEndpoint::Generate,
        &[chunk(json!([{"text": "x"}]), json!("MAX_TOKENS"))],
    );
    assert_eq!(
        (&frames[..], reading.is_complete()),
        (&[FrameKind::Content][..], true)
    );
    assert_eq!(reading.summary().finish, Some(FinishReason::MaxTokens));
}

#[test]
fn array_is_complete_when_closed() {
    let mut reading = ResponseReader::new(LlmApiEndpoint::Generate);
    let events = answer();
    assert_eq!(
        reading.read_frame(format!("[{}", events[1]).as_bytes()),
        FrameKind::Content
    );
    assert_eq!(
        reading.read_frame(format!("\n,\r\n{}", events[3]).as_bytes()),
        FrameKind::End
    );
    assert!(!reading.is_complete());
    assert_eq!(reading.read_frame(b"\n]"), FrameKind::End);
    assert!(reading.is_complete());
    let mut empty = ResponseReader::new(LlmApiEndpoint::Generate);
    assert_eq!(
        (empty.read_frame(b"[]"), empty.is_complete()),
        (FrameKind::End, false)
    );
}

#[test]
fn error_is_read_in_event_array_and_document() {
    let body = json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}});
    let (frames, reading) = stream(LlmApiEndpoint::Generate, std::slice::from_ref(&body));
    assert_eq!(
        (&frames[..], reading.is_complete()),
        (&[FrameKind::Error][..], false)
    );
    assert_eq!(
        reading.summary().error.as_deref(),
        Some(&*body["error"].to_string())
    );
    for body in [body.clone(), json!([body])] {
        assert_eq!(whole(LlmApiEndpoint::Generate, &body).0, FrameKind::Error);
    }
}

#[test]
fn blocked_prompt_ends_with_content_filter() {
    let body = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}});
    let (frames, reading) = stream(LlmApiEndpoint::Generate, &[body]);
    assert_eq!(
        (&frames[..], reading.is_complete()),
        (&[FrameKind::End][..], true)
    );
    assert_eq!(reading.summary().finish, Some(FinishReason::ContentFilter));
    let (_, reading) = stream(
        LlmApiEndpoint::Generate,
        &[chunk(json!([]), json!("RECITATION"))],
    );
    assert_eq!(reading.summary().finish, Some(FinishReason::ContentFilter));
}
