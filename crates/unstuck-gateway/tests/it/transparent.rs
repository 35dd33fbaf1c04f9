//! Requests and responses arrive as they were sent.

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

/// Odd whitespace, duplicate keys and letters of all kinds arrive as they were sent.
#[tokio::test]
async fn request_arrives_byte_for_byte() {
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

/// Other paths and methods pass through without inspection.
#[tokio::test]
async fn other_paths_pass_through_unchanged() {
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

/// A client gets the headers of the response, with what the gateway did.
#[tokio::test]
async fn response_keeps_its_headers_and_adds_gateway_headers() {
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

/// The upstream's own key replaces the client's, which is not forwarded.
#[tokio::test]
async fn upstream_key_replaces_the_client_key() {
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

/// A session that was switched to another model keeps it, and nothing else of its requests changes.
#[tokio::test]
async fn switched_session_uses_its_new_model() {
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

/// A client that requests a WebSocket gets an error, and the upstream is not contacted.
#[tokio::test]
async fn websocket_is_rejected_with_a_reason() {
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
