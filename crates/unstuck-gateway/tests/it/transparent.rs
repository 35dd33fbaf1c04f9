//! What is sent is what arrives, and what comes back is what the client gets.

use base64::Engine;
use hyper::Method;
use serde_json::Value;
use unstuck_gateway::protocol::Protocol::{Anthropic, Gemini, OpenAi};
use unstuck_gateway::{GatewaySettings, Secret};

use crate::Ground;

const ECHO: &str = "[[step]]\nwhen = { path = \"/\" }\necho = {}\ntimes = \"always\"\n";

fn echoed(body: &str) -> Value {
    serde_json::from_str(body).expect(body)
}

/// Odd white space, doubled keys and letters of all kinds arrive as they were sent.
#[tokio::test]
async fn a_request_arrives_byte_for_byte() {
    let ground = Ground::new(OpenAi, &[ECHO]).await;
    let body = "{ \"model\":\"gpt-x\" ,\n\t\"messages\":[ {\"role\":\"user\",\"content\":\"Grüße \\u00e9 \u{1F980}\"}],\"n\":1.0,\"n\":2, \"stream\" : false }\n";
    let headers = [
        ("content-type", "application/json"),
        ("openai-organization", "org-1"),
        ("x-custom", "a, b"),
        ("x-custom", "c"),
    ];
    let reply = ground
        .send(
            Method::POST,
            "/openai/v1/chat/completions?a=1&b=%20",
            &headers,
            body,
        )
        .await;
    let seen = echoed(&reply.body);
    assert_eq!(seen["path"], "/v1/chat/completions", "{seen}");
    assert_eq!(seen["query"], "a=1&b=%20");
    let sent = base64::engine::general_purpose::STANDARD
        .decode(seen["body"]["base64"].as_str().unwrap())
        .unwrap();
    assert_eq!(String::from_utf8(sent).unwrap(), body);
    let all = seen["headers"].to_string();
    for text in ["org-1", "a, b", "Bearer key-1"] {
        assert!(all.contains(text), "{text}: {all}");
    }
}

/// What is not looked into passes through: other paths, other methods.
#[tokio::test]
async fn other_addresses_pass_through_unchanged() {
    let ground = Ground::new(Anthropic, &[ECHO]).await;
    for (method, path, body) in [
        (Method::GET, "/anthropic/v1/models?limit=5", ""),
        (
            Method::POST,
            "/anthropic/v1/messages/count_tokens",
            "{\"model\":\"x\"}",
        ),
        (Method::DELETE, "/anthropic/v1/files/f1", ""),
    ] {
        let reply = ground.send(method.clone(), path, &[], body).await;
        let seen = echoed(&reply.body);
        assert_eq!(seen["method"], method.as_str(), "{path}");
        assert!(
            path.ends_with(&format!(
                "{}{}",
                seen["path"].as_str().unwrap(),
                seen["query"]
                    .as_str()
                    .map(|query| format!("?{query}"))
                    .unwrap_or_default()
            )),
            "{path}: {seen}"
        );
    }
    let ground = Ground::new(Gemini, &[ECHO]).await;
    let reply = ground
        .send(Method::GET, "/gemini/v1beta/models", &[], "")
        .await;
    assert_eq!(echoed(&reply.body)["path"], "/v1beta/models");
}

/// The headers of an answer are the client's, with what the gateway did.
#[tokio::test]
async fn an_answer_keeps_its_headers_and_tells_what_was_done() {
    let ground = Ground::new(Anthropic, &["[[step]]\nanswer = {}\n"]).await;
    let reply = ground
        .post(
            "/s/my-session/anthropic/v1/messages",
            r#"{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#,
        )
        .await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
    assert!(!reply.header("request-id").is_empty(), "{reply:?}");
    assert_eq!(reply.header("x-unstuck-session"), "my-session");
    assert_eq!(reply.header("x-unstuck-attempts"), "1");
    assert_eq!(reply.header("x-unstuck-model"), "claude-x");
    assert_eq!(ground.gateway.session("my-session").unwrap().calls(), 1);
}

/// A key of the upstream's own takes the place of the client's, which goes nowhere.
#[tokio::test]
async fn an_upstreams_own_key_replaces_the_clients() {
    for (protocol, path) in [
        (OpenAi, "/openai/v1/chat/completions"),
        (Anthropic, "/anthropic/v1/messages"),
        (
            Gemini,
            "/gemini/v1beta/models/g:generateContent?key=key-1&x=1",
        ),
    ] {
        let own = |settings: &mut GatewaySettings| {
            settings.upstreams[0].key = Some(Secret::new("own-key"))
        };
        let ground = Ground::with(protocol, &[ECHO], own).await;
        let reply = ground.post(path, "{}").await;
        assert!(
            reply.body.contains("own-key") && !reply.body.contains("key-1"),
            "{}",
            reply.body
        );
    }
}

/// A session that was moved to another model keeps it, and nothing else of its requests changes.
#[tokio::test]
async fn a_moved_session_asks_its_new_model() {
    let ground = Ground::new(Anthropic, &["[[step]]\nanswer = {}\ntimes = \"always\"\n"]).await;
    let path = "/s/moved/anthropic/v1/messages";
    let body = r#"{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
    ground.post(path, body).await;
    let session = ground.gateway.session("moved").unwrap();
    session.set_model(Some("claude-y".into()));
    let reply = ground.post(path, body).await;
    assert_eq!(reply.header("x-unstuck-model"), "claude-y");
    session.set_model(None);
    ground.post(path, body).await;
    let models: Vec<_> = ground.upstreams[0]
        .requests()
        .iter()
        .map(|request| request.model.clone())
        .collect();
    assert_eq!(models, ["claude-x", "claude-y", "claude-x"]);
}

/// A client that wants a WebSocket is told that there is none, and upstream hears nothing of it.
#[tokio::test]
async fn a_websocket_is_refused_with_a_reason() {
    let ground = Ground::new(OpenAi, &["[[step]]\nanswer = {}\ntimes = \"always\"\n"]).await;
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let path = "/openai/v1/realtime?model=gpt-x";
    let reply = ground.send(hyper::Method::GET, path, &headers, "").await;
    assert_eq!(reply.status.as_u16(), 426, "{reply:?}");
    assert!(reply.body.contains("WebSocket"), "{}", reply.body);
    assert_eq!(ground.asked(), [0]);
}
