use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn body_with_model(endpoint: LlmApiEndpoint, body: &str, model: &str) -> String {
    let changed = with_model(endpoint, "", body.as_bytes(), model)
        .body
        .unwrap();
    String::from_utf8(changed.into()).unwrap()
}

#[test]
fn model_change_keeps_all_other_bytes() {
    let body = "\n{ \"a\" : 1.0e+2,\t\"model\"  :  \"o\\u006cd\" ,\"a\":\"é\\u00e9\\/ \u{1f600}\",\r\n \"m\":{\"model\":\"old\"} }  ";
    let expected = body.replacen("\"o\\u006cd\"", "\"new\"", 1);
    for endpoint in [
        LlmApiEndpoint::Messages,
        LlmApiEndpoint::Chat,
        LlmApiEndpoint::Responses,
    ] {
        assert_eq!(body_with_model(endpoint, body, "new"), expected);
    }
}

#[test]
fn duplicate_models_are_all_changed_and_a_missing_one_is_added() {
    let twice = r#"{"model":"a","x":1,"mod\u0065l":"b"}"#;
    let changed = body_with_model(LlmApiEndpoint::Chat, twice, "n\"ew");
    assert_eq!(changed, r#"{"model":"n\"ew","x":1,"mod\u0065l":"n\"ew"}"#);
    let missing = body_with_model(LlmApiEndpoint::Chat, "{ \"x\":1}", "m");
    assert_eq!(missing, "{\"model\":\"m\", \"x\":1}");
    assert_eq!(
        body_with_model(LlmApiEndpoint::Chat, " { }", "m"),
        " {\"model\":\"m\" }"
    );
}

#[test]
fn non_object_is_left_unchanged() {
    for body in ["", "[]", "null", "{\"model\":", "\u{feff}{}"] {
        let changed = with_model(LlmApiEndpoint::Chat, "", body.as_bytes(), "m");
        assert_eq!(changed, RewrittenRequest::default(), "{body}");
        for endpoint in LlmApiEndpoint::KNOWN {
            assert_eq!(with_max_output(endpoint, &bytes(body), 5), body);
            assert_eq!(with_note(endpoint, &bytes(body), "x"), body);
            assert_eq!(with_error_context(endpoint, &bytes(body), "x", "y"), body);
        }
    }
}

#[test]
fn gemini_model_is_changed_in_the_path() {
    let path = "/v1beta/models/gemini-3-flash:streamGenerateContent";
    let to = |model: &str| with_model(LlmApiEndpoint::Generate, path, b"{}", model);
    let expected = "/v1beta/models/gemini-3-pro:streamGenerateContent";
    for model in ["gemini-3-pro", "models/gemini-3-pro"] {
        let changed = to(model);
        assert_eq!(
            (changed.path.as_deref(), changed.body),
            (Some(expected), None)
        );
    }
    let odd = to("a/b?c:d").path.unwrap();
    assert_eq!(odd, "/v1beta/models/a%2Fb%3Fc%3Ad:streamGenerateContent");
    assert_eq!(
        with_model(LlmApiEndpoint::Other, path, b"{}", "x"),
        RewrittenRequest::default()
    );
}

#[test]
fn output_limit_is_set_in_every_api() {
    let cases = [
        (
            LlmApiEndpoint::Messages,
            r#"{"max_tokens" : 9}"#,
            r#"{"max_tokens" : 50}"#,
        ),
        (
            LlmApiEndpoint::Chat,
            r#"{"max_tokens":9}"#,
            r#"{"max_tokens":50}"#,
        ),
        (
            LlmApiEndpoint::Chat,
            "{}",
            r#"{"max_completion_tokens":50}"#,
        ),
        (
            LlmApiEndpoint::Responses,
            "{}",
            r#"{"max_output_tokens":50}"#,
        ),
        (
            LlmApiEndpoint::Generate,
            "{}",
            r#"{"generationConfig":{"maxOutputTokens":50}}"#,
        ),
        (
            LlmApiEndpoint::Generate,
            r#"{"generationConfig":{"topK": 1}, "x":0}"#,
            r#"{"generationConfig":{"maxOutputTokens":50,"topK": 1}, "x":0}"#,
        ),
        (
            LlmApiEndpoint::Generate,
            r#"{"generation_config":{"max_output_tokens":1 }}"#,
            r#"{"generation_config":{"max_output_tokens":50 }}"#,
        ),
        (
            LlmApiEndpoint::Generate,
            r#"{"generationConfig":null}"#,
            r#"{"generationConfig":{"maxOutputTokens":50}}"#,
        ),
    ];
    for (endpoint, body, expected) in cases {
        assert_eq!(
            with_max_output(endpoint, &bytes(body), 50),
            expected,
            "{body}"
        );
    }
}

fn noted(endpoint: LlmApiEndpoint, body: &Value) -> Value {
    json(&with_note(
        endpoint,
        &bytes(&body.to_string()),
        "Look \"up\"",
    ))
}

#[test]
fn claude_note_follows_tool_results() {
    let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "x"});
    let noted = noted(
        LlmApiEndpoint::Messages,
        &json!({"messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {}}]},
            {"role": "user", "content": [result]},
        ]}),
    );
    let content = &noted["messages"][1]["content"];
    assert_eq!(
        *content,
        json!([result, {"type": "text", "text": "Look \"up\""}])
    );
}

#[test]
fn claude_note_precedes_a_prefill() {
    let noted = noted(
        LlmApiEndpoint::Messages,
        &json!({"messages": [
            {"role": "user", "content": "Hi\n"}, {"role": "assistant", "content": "{"},
        ]}),
    );
    assert_eq!(noted["messages"][0]["content"], "Hi\n\n\nLook \"up\"");
    assert_eq!(noted["messages"][1]["content"], "{");
}

#[test]
fn chat_note_is_a_message_after_results_and_before_a_prefill() {
    let note = json!({"role": "user", "content": "Look \"up\""});
    let tool = json!({"role": "tool", "tool_call_id": "a", "content": "x"});
    let call = json!({"role": "assistant", "tool_calls": [{"id": "a"}]});
    let prefill = json!({"role": "assistant", "content": "{"});
    let noted = |messages: Value| {
        noted(LlmApiEndpoint::Chat, &json!({"messages": messages}))["messages"].clone()
    };
    assert_eq!(noted(json!([call, tool])), json!([call, tool, note]));
    assert_eq!(
        noted(json!([call, tool, prefill])),
        json!([call, tool, note, prefill])
    );
    assert_eq!(noted(json!([])), json!([note]));
}

#[test]
fn responses_note_is_an_item_or_extends_the_text() {
    let note = json!({
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look \"up\""}],
    });
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "x"});
    let noted = |body: Value| noted(LlmApiEndpoint::Responses, &body)["input"].clone();
    assert_eq!(noted(json!({"input": [output]})), json!([output, note]));
    assert_eq!(noted(json!({"input": "Hi"})), "Hi\n\nLook \"up\"");
    assert_eq!(noted(json!({"input": ""})), "Look \"up\"");
    assert_eq!(noted(json!({"conversation": "c"})), "Look \"up\"");
}

#[test]
fn note_is_added_to_the_conversation_of_each_api() {
    let body =
        json!({"messages": [{"role": "user", "content": "Hi"}], "input": "Hi", "contents": []});
    let noted = noted(LlmApiEndpoint::Chat, &body);
    assert_eq!(noted["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&noted["input"], &noted["contents"]),
        (&body["input"], &body["contents"])
    );
}

#[test]
fn gemini_note_is_part_of_the_last_user_content() {
    let response = json!({"functionResponse": {"name": "ls", "response": {}}});
    let noted = noted(
        LlmApiEndpoint::Generate,
        &json!({"contents": [
            {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]},
            {"role": "user", "parts": [response]},
            {"role": "model", "parts": [{"text": "{"}]},
        ]}),
    );
    let parts = &noted["contents"][1]["parts"];
    assert_eq!(*parts, json!([response, {"text": "Look \"up\""}]));
}

#[test]
fn unusable_response_is_added_with_the_reason() {
    let wrong = |endpoint, body: Value| {
        json(&with_error_context(
            endpoint,
            &bytes(&body.to_string()),
            "{oops",
            "was not valid JSON",
        ))
    };
    let complaint = "Your last answer was not valid JSON. Answer again without this problem.";
    let user = json!({"role": "user", "content": "Hi"});
    let turns = json!([
        user, {"role": "assistant", "content": "{oops"}, {"role": "user", "content": complaint},
    ]);
    for endpoint in [LlmApiEndpoint::Messages, LlmApiEndpoint::Chat] {
        assert_eq!(
            wrong(endpoint, json!({"messages": [user]}))["messages"],
            turns
        );
    }
    let responses = wrong(LlmApiEndpoint::Responses, json!({"input": "Hi"}));
    let input = &responses["input"];
    assert_eq!(
        (&input[0]["content"], &input[1]["role"]),
        (&json!("Hi"), &json!("assistant"))
    );
    assert_eq!(
        input[1]["content"][0],
        json!({"type": "output_text", "text": "{oops"})
    );
    assert_eq!(input[2]["content"][0]["text"], complaint);
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]});
    let gemini = wrong(LlmApiEndpoint::Generate, contents);
    assert_eq!(
        gemini["contents"][1],
        json!({"role": "model", "parts": [{"text": "{oops"}]})
    );
    assert_eq!(gemini["contents"][2]["parts"][0]["text"], complaint);
}

#[test]
fn response_that_cannot_be_a_message_is_quoted() {
    let body =
        bytes(r#"{"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"Hi"}]}"#);
    let changed = json(&with_error_context(
        LlmApiEndpoint::Messages,
        &body,
        "{oops",
        "was not valid JSON",
    ));
    assert_eq!(changed["messages"].as_array().map(Vec::len), Some(1));
    let text = changed["messages"][0]["content"].as_str().unwrap();
    assert!(
        text.starts_with("Hi\n\n") && text.ends_with("{oops"),
        "{text}"
    );
    let empty = json(&with_error_context(
        LlmApiEndpoint::Chat,
        &body,
        " \n",
        "was empty",
    ));
    assert_eq!(empty["messages"].as_array().map(Vec::len), Some(2));
    let text = empty["messages"][1]["content"].as_str().unwrap();
    assert_eq!(
        text,
        "Your last answer was empty. Answer again without this problem."
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let keys = prop_oneof![
        Just("model"),
        Just("messages"),
        Just("role"),
        Just("content"),
        Just("input"),
        Just("contents"),
        Just("parts"),
        Just("generationConfig"),
        Just("max_tokens"),
        Just("thinking"),
        Just("text"),
    ];
    leaf.prop_recursive(5, 48, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..5).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    /// After any change, JSON stays JSON, and the rest of it stays as it was.
    #[test]
    fn changed_json_stays_json(value in any_json(), pretty in any::<bool>(), text in ".{1,20}") {
        let body = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let body = bytes(&body);
        for endpoint in LlmApiEndpoint::KNOWN {
            let model = with_model(endpoint, "", &body, &text).body;
            if let Some(changed) = &model {
                let mut expected = value.clone();
                expected["model"] = Value::from(&*text);
                prop_assert_eq!(sorted(&json(changed)), sorted(&expected));
            }
            json(&with_max_output(endpoint, &body, 7));
            let noted = with_note(endpoint, &body, &text);
            json(&noted);
            let text = quoted(&text);
            let added = noted.windows(text.len() - 2).any(|part| part == &text.as_bytes()[1..text.len() - 1]);
            prop_assert!(noted == body || added);
            json(&with_error_context(endpoint, &body, &text, "why."));
        }
    }

    #[test]
    fn arbitrary_bytes_are_changed_without_panic(body in prop::collection::vec(any::<u8>(), 0..200), path in ".{0,40}") {
        let body = Bytes::from(body);
        for endpoint in LlmApiEndpoint::KNOWN {
            with_model(endpoint, &path, &body, "m");
            with_max_output(endpoint, &body, 7);
            with_note(endpoint, &body, "n");
            with_error_context(endpoint, &body, "n", "w");
        }
    }
}

/// Returns the value without the order of its members.
fn sorted(value: &Value) -> Value {
    let Some(object) = value.as_object() else {
        return value.clone();
    };
    let mut members: Vec<_> = object.clone().into_iter().collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    members.into_iter().collect()
}
