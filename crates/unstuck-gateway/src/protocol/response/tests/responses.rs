use serde_json::{Value, json};

use super::*;

fn response(status: &str, output: Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1_790_000_000, "status": status, "model": "gpt-6-codex",
        "output": output, "error": null, "incomplete_details": null,
        "usage": {
            "input_tokens": 100, "input_tokens_details": {"cached_tokens": 80}, "output_tokens": 9,
        },
    })
}

fn begun() -> Value {
    let mut response = response("in_progress", json!([]));
    response["usage"] = Value::Null;
    response
}

fn items() -> Value {
    json!([
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "id": "f", "call_id": "c", "name": "read", "arguments": "{\"path\":\"a\"}"},
    ])
}

pub(super) fn answer() -> Vec<Value> {
    let items = items();
    let mut empty = items[1].clone();
    empty["content"] = json!([]);
    let mut call = items[2].clone();
    call["arguments"] = json!("");
    let events = vec![
        json!({"type": "response.created", "response": begun()}),
        json!({"type": "response.in_progress", "response": begun()}),
        json!({"type": "response.output_item.added", "item": items[0]}),
        json!({"type": "response.output_item.done", "item": items[0]}),
        json!({"type": "response.output_item.added", "item": empty}),
        json!({"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}}),
        json!({"type": "response.output_text.delta", "delta": "I "}),
        json!({"type": "response.output_text.delta", "delta": "look."}),
        json!({"type": "response.output_text.done", "text": "I look."}),
        json!({"type": "response.content_part.done", "part": {"type": "output_text", "text": "I look."}}),
        json!({"type": "response.output_item.done", "item": items[1]}),
        json!({"type": "response.output_item.added", "item": call}),
        json!({"type": "response.function_call_arguments.delta", "delta": "{\"path\":\"a\"}"}),
        json!({"type": "response.function_call_arguments.done", "arguments": "{\"path\":\"a\"}"}),
        json!({"type": "response.output_item.done", "item": items[2]}),
        json!({"type": "response.completed", "response": response("completed", items)}),
    ];
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        event
    });
    numbered.collect()
}

#[test]
fn stream_and_document_give_the_same_summary() {
    use FrameKind::{Content, End, Lifecycle};
    let (frames, streamed) = stream(LlmApiEndpoint::Responses, &answer());
    #[rustfmt::skip]
    assert_eq!(frames, [
        Lifecycle, Lifecycle, Lifecycle, Lifecycle, Lifecycle, Lifecycle, Content, Content, Content, Lifecycle,
        Content, Content, Content, Content, Content, End,
    ]);
    let (frame, once) = whole(LlmApiEndpoint::Responses, &response("completed", items()));
    assert_eq!(frame, FrameKind::Content);
    assert_eq!(streamed.summary(), once.summary());
    assert!(streamed.is_complete() && once.is_complete());
    let said = once.summary();
    assert_eq!(tokens(said), Some((20, 80, 9)));
    assert_eq!(
        (said.finish.as_ref(), said.text_bytes),
        (Some(&FinishReason::ToolUse), 7)
    );
    assert_eq!((said.calls.len(), &*said.calls[0].name), (1, "read"));
    assert_eq!(
        (streamed.sequence, streamed.id.as_deref()),
        (Some(15), Some("resp_1"))
    );
}

#[test]
fn response_without_pieces_is_read_from_its_last_event() {
    let events = answer();
    let (_, all) = stream(LlmApiEndpoint::Responses, &events);
    let (_, few) = stream(
        LlmApiEndpoint::Responses,
        &[events[0].clone(), events[15].clone()],
    );
    assert_eq!(all.summary(), few.summary());
}

#[test]
fn incomplete_response_is_complete_as_a_stream() {
    for (reason, finish) in [
        ("max_output_tokens", FinishReason::MaxTokens),
        ("content_filter", FinishReason::ContentFilter),
    ] {
        let mut response = response("incomplete", json!([]));
        response["incomplete_details"] = json!({"reason": reason});
        let event = json!({"type": "response.incomplete", "response": response});
        let (frames, reading) = stream(LlmApiEndpoint::Responses, &[event]);
        assert_eq!(
            (&frames[..], reading.is_complete()),
            (&[FrameKind::End][..], true)
        );
        assert_eq!(reading.summary().finish, Some(finish.clone()));
        assert_eq!(
            whole(LlmApiEndpoint::Responses, &response)
                .1
                .summary()
                .finish,
            Some(finish)
        );
    }
}

#[test]
fn both_failure_events_are_errors() {
    let error = json!({"code": "server_error", "message": "x"});
    let mut response = response("failed", json!([]));
    response["error"] = error.clone();
    let failed = json!({"type": "response.failed", "response": response});
    let (frames, reading) = stream(LlmApiEndpoint::Responses, &[failed]);
    assert_eq!(
        (&frames[..], reading.is_complete()),
        (&[FrameKind::Error][..], true)
    );
    assert_eq!(
        reading.summary().error.as_deref(),
        Some(&*error.to_string())
    );
    assert_eq!(
        whole(LlmApiEndpoint::Responses, &response).0,
        FrameKind::Error
    );

    let flat = json!({"type": "error", "code": "rate_limit_exceeded", "message": "x", "sequence_number": 3});
    let (frames, reading) = stream(LlmApiEndpoint::Responses, std::slice::from_ref(&flat));
    assert_eq!(
        (&frames[..], reading.is_complete()),
        (&[FrameKind::Error][..], false)
    );
    assert_eq!(reading.summary().error.as_deref(), Some(&*flat.to_string()));
}

#[test]
fn refusal_is_content() {
    let events = [
        json!({"type": "response.refusal.delta", "delta": "I can't."}),
        json!({"type": "response.completed", "response": response("completed", json!([]))}),
    ];
    let (frames, reading) = stream(LlmApiEndpoint::Responses, &events);
    assert_eq!(frames, [FrameKind::Content, FrameKind::End]);
    assert_eq!(reading.summary().finish, Some(FinishReason::Refusal));
}

#[test]
fn done_marker_of_other_apis_is_not_the_end() {
    let (frames, reading) = stream(
        LlmApiEndpoint::Responses,
        &[answer()[0].clone(), json!("[DONE]")],
    );
    assert_eq!(
        (frames[1], reading.is_complete()),
        (FrameKind::Lifecycle, false)
    );
}

#[test]
fn background_response_is_complete() {
    let (frame, reading) = whole(LlmApiEndpoint::Responses, &response("queued", json!([])));
    assert_eq!((frame, reading.is_complete()), (FrameKind::End, true));
    assert_eq!(
        reading.summary().finish,
        Some(FinishReason::Other("queued".into()))
    );
}
