use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const PATH: &str = "/v1beta/models/gemini-3-pro:streamGenerateContent";

fn read(endpoint: LlmApiEndpoint, body: &Value) -> RequestFacts {
    RequestFacts::read(endpoint, PATH, body.to_string().as_bytes())
}

fn last(endpoint: LlmApiEndpoint, body: &Value) -> LastTurn {
    read(endpoint, body).last.unwrap()
}

#[test]
fn anthropic_request_is_read() {
    let body = json!({
        "model": "claude-opus-5-5", "max_tokens": 1024, "stream": true, "system": "Be brief.",
        "tools": [{"name": "bash", "input_schema": {"type": "object"}}],
        "output_format": {"type": "json_schema", "schema": {}},
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(40_000)}},
            ]},
            {"role": "assistant", "content": "{\"it\":"},
        ],
    });
    let asked = read(LlmApiEndpoint::Messages, &body);
    assert_eq!(asked.model.as_deref(), Some("claude-opus-5-5"));
    assert!(asked.stream && asked.tools && asked.images && asked.prefill && asked.wants_json);
    assert_eq!((asked.max_output, asked.messages), (Some(1024), 2));
    assert!((1500..1600).contains(&asked.prompt_tokens), "{asked:?}");
}

#[test]
fn chat_completions_request_is_read() {
    let body = json!({
        "model": "gpt-6", "max_completion_tokens": 99, "max_tokens": 5,
        "response_format": {"type": "json_object"},
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "x".repeat(4000)},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ]},
        ],
    });
    let asked = read(LlmApiEndpoint::Chat, &body);
    assert_eq!(asked.model.as_deref(), Some("gpt-6"));
    assert!(!asked.stream && !asked.tools && asked.images && !asked.prefill && asked.wants_json);
    assert_eq!((asked.max_output, asked.messages), (Some(99), 2));
    assert!((2500..2600).contains(&asked.prompt_tokens), "{asked:?}");
}

#[test]
fn responses_request_is_read() {
    let body = json!({
        "model": "gpt-6-codex", "stream": true, "instructions": "Be brief.", "max_output_tokens": 7,
        "text": {"format": {"type": "json_schema", "name": "it", "schema": {}}},
        "tools": [{"type": "function", "name": "shell"}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hello"}, {"type": "input_image", "image_url": "data:"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "A".repeat(40_000)},
        ],
    });
    let asked = read(LlmApiEndpoint::Responses, &body);
    assert_eq!(asked.model.as_deref(), Some("gpt-6-codex"));
    assert!(asked.stream && asked.tools && asked.images && !asked.prefill && asked.wants_json);
    assert_eq!((asked.max_output, asked.messages), (Some(7), 1));
    assert!(asked.prompt_tokens < 1600, "{asked:?}");
    let short = read(
        LlmApiEndpoint::Responses,
        &json!({"model": "gpt-6", "input": "Hello"}),
    );
    assert_eq!((short.messages, short.prompt_tokens), (1, 1));
}

#[test]
fn gemini_request_is_read_in_camel_and_snake_case() {
    let camel = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": []}],
        "generationConfig": {"maxOutputTokens": 64, "responseMimeType": "application/json"},
        "contents": [
            {"role": "user", "parts": [{"text": "Hello"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
            {"role": "model", "parts": [{"text": "{"}]},
        ],
    });
    let snake = camel
        .to_string()
        .replace("systemInstruction", "system_instruction");
    let snake = snake
        .replace("generationConfig", "generation_config")
        .replace("maxOutputTokens", "max_output_tokens");
    let snake = snake
        .replace("inlineData", "inline_data")
        .replace("mimeType", "mime_type");
    let snake = snake.replace("responseMimeType", "response_mime_type");
    for body in [camel.to_string(), snake] {
        let asked = RequestFacts::read(LlmApiEndpoint::Generate, PATH, body.as_bytes());
        assert_eq!(asked.model.as_deref(), Some("gemini-3-pro"));
        assert!(asked.stream && asked.tools && asked.images && asked.prefill && asked.wants_json);
        assert_eq!((asked.max_output, asked.messages), (Some(64), 2));
    }
    let once = RequestFacts::read(
        LlmApiEndpoint::Generate,
        "/v1/models/m:generateContent",
        b"not JSON",
    );
    assert_eq!(
        (once.model.as_deref(), once.stream, once.messages),
        (Some("m"), false, 0)
    );
}

/// Returns the same turn in each API: two calls and their results.
fn turns(path: &str, first: &str, second: &str) -> [(LlmApiEndpoint, Value); 4] {
    let arguments = json!({"path": path});
    let text = arguments.to_string();
    let messages = json!({"messages": [
        {"role": "user", "content": [{"type": "text", "text": "Go"}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "a", "name": "read", "input": arguments},
            {"type": "tool_use", "id": "b", "name": "list", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": first},
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": second}]},
            {"type": "text", "text": "<reminder>"},
        ]},
    ]});
    let chat = json!({"messages": [
        {"role": "system", "content": "now 12:00"},
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "read", "arguments": text}},
            {"id": "b", "type": "function", "function": {"name": "list", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "a", "content": first},
        {"role": "tool", "tool_call_id": "b", "content": second},
    ]});
    let responses = json!({"input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "read", "arguments": text},
        {"type": "function_call", "call_id": "b", "name": "list", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": first},
        {"type": "function_call_output", "call_id": "b", "output": second},
    ]});
    let generate = json!({"contents": [
        {"role": "user", "parts": [{"text": "Go"}]},
        {"role": "model", "parts": [
            {"functionCall": {"name": "read", "args": arguments}}, {"functionCall": {"name": "list", "args": {}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "read", "response": {"output": first}}},
            {"functionResponse": {"name": "list", "response": {"output": second}}},
        ]},
    ]});
    [
        (LlmApiEndpoint::Messages, messages),
        (LlmApiEndpoint::Chat, chat),
        (LlmApiEndpoint::Responses, responses),
        (LlmApiEndpoint::Generate, generate),
    ]
}

#[test]
fn last_calls_and_results_are_recognized_in_every_api() {
    let same = turns("a.rs", "one", "two");
    let other_call = turns("b.rs", "one", "two");
    let other_result = turns("a.rs", "one", "three");
    let mut calls = Vec::new();
    for (((endpoint, body), (_, other_call)), (_, other_result)) in
        same.iter().zip(&other_call).zip(&other_result)
    {
        let turn = last(*endpoint, body);
        let names: Vec<_> = turn.calls.iter().map(|call| &*call.name).collect();
        assert_eq!(names, ["read", "list"], "{endpoint:?}");
        assert_eq!(turn.results.len(), 2, "{endpoint:?}");
        assert_eq!(turn, last(*endpoint, body));
        assert_ne!(turn.calls, last(*endpoint, other_call).calls);
        let other = last(*endpoint, other_result);
        assert_eq!(
            (&turn.calls, turn.conversation),
            (&other.calls, other.conversation)
        );
        assert_eq!(turn.results[0], other.results[0]);
        assert_ne!(turn.results[1], other.results[1]);
        assert_ne!(turn.position, other.position);
        calls.push(turn.calls);
    }
    assert!(calls.iter().all(|each| *each == calls[0]), "{calls:?}");
}

#[test]
fn conversation_is_identified_by_the_first_user_message() {
    for (endpoint, mut body) in turns("a.rs", "one", "two") {
        let before = last(endpoint, &body);
        let key = match endpoint {
            LlmApiEndpoint::Responses => "input",
            LlmApiEndpoint::Generate => "contents",
            _ => "messages",
        };
        let messages = body[key].as_array_mut().unwrap();
        messages.push(json!({
            "role": "user", "content": "And now?", "parts": [{"text": "And now?"}],
        }));
        let after = last(endpoint, &body);
        assert_eq!(before.conversation, after.conversation, "{endpoint:?}");
        assert_ne!(before.position, after.position);
        // The user has sent a message: the tool results are no longer the newest items.
        assert!(
            after.calls.is_empty() && after.results.is_empty(),
            "{endpoint:?}"
        );
        let other = body.to_string().replace("\"Go\"", "\"Stop\"");
        let other = RequestFacts::read(endpoint, PATH, other.as_bytes())
            .last
            .unwrap();
        assert_ne!(before.conversation, other.conversation);
    }
}

#[test]
fn cache_markers_change_neither_conversation_nor_result() {
    let marked = json!({"cache_control": {"type": "ephemeral"}, "type": "text", "text": "Go"});
    let body = |first: Value, result: Value| {
        json!({"messages": [
            {"role": "user", "content": [first]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [result]}]},
        ]})
    };
    let plain = json!({"type": "text", "text": "Go"});
    let one = last(
        LlmApiEndpoint::Messages,
        &body(marked.clone(), plain.clone()),
    );
    let two = last(LlmApiEndpoint::Messages, &body(plain, marked));
    assert_eq!(
        (one.conversation, one.results),
        (two.conversation, two.results)
    );
}

#[test]
fn stored_conversation_advances_by_the_continued_response() {
    let body = |previous: &str| {
        json!({
            "previous_response_id": previous,
            "input": [{"type": "function_call_output", "call_id": "a", "output": "same"}],
        })
    };
    let (one, two) = (
        last(LlmApiEndpoint::Responses, &body("r1")),
        last(LlmApiEndpoint::Responses, &body("r2")),
    );
    assert!(one.calls.is_empty());
    assert_eq!(
        (one.conversation, &one.results),
        (two.conversation, &two.results)
    );
    assert_ne!(one.position, two.position);
}

#[test]
fn odd_requests_are_read_partially() {
    let odd = br#"{"model":"a","model":"b","stream":"yes","max_tokens":"7","messages":[1,"x",null,
        {"role":"user","content":"\ud800 half"},{"role":7,"content":{"a":1}}],"tools":{}}"#;
    let asked = RequestFacts::read(LlmApiEndpoint::Messages, "", odd);
    assert_eq!(asked.model.as_deref(), Some("b"));
    assert!(!asked.stream && !asked.tools && asked.max_output.is_none());
    assert_eq!(asked.messages, 5);
}

#[test]
fn malformed_requests_have_no_facts() {
    for body in [
        &b"{\"model\":\"x\""[..],
        b"",
        b"{\"model\":\"x\"} more",
        b"\xff\xfe",
    ] {
        for endpoint in LlmApiEndpoint::KNOWN {
            assert_eq!(
                RequestFacts::read(endpoint, "", body),
                RequestFacts::default(),
                "{body:?}"
            );
        }
    }
    let body = br#"{"model":"x","messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(
        RequestFacts::read(LlmApiEndpoint::Other, PATH, body),
        RequestFacts::default()
    );
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_without_panic(body in proptest::collection::vec(any::<u8>(), 0..200), path in ".{0,40}") {
        for endpoint in LlmApiEndpoint::KNOWN {
            RequestFacts::read(endpoint, &path, &body);
        }
    }

    #[test]
    fn damaged_requests_are_read_without_panic(which in 0usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (endpoint, body) = &turns("a.rs", "one", "two")[which];
        let mut bytes = body.to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        RequestFacts::read(*endpoint, PATH, &bytes);
        RequestFacts::read(*endpoint, PATH, &bytes[..at]);
    }
}
