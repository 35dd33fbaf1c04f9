//! Auxiliary queries, exact echoes, and statistics.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use unstuck_faults::{
    AuxiliaryAnswerMode, FaultScript, FaultScriptReply, FaultScriptStep, FaultServer,
    RequestCondition,
};

use crate::exchange::{ANTHROPIC, CHAT, DIALECTS, End, bare, post, post_with, send};

#[tokio::test]
async fn embeddings_and_files_get_plausible_answers() {
    let server = FaultServer::start(FaultScript::default()).unwrap();
    let body = json!({"model": "text-embedding-3-small", "input": ["one", "two"]});
    let embedded = post(&server, "/v1/embeddings", &body).await.json();
    assert_eq!(embedded["data"].as_array().unwrap().len(), 2);
    assert_ne!(
        embedded["data"][0]["embedding"],
        embedded["data"][1]["embedding"]
    );
    assert_eq!(embedded["model"], "text-embedding-3-small");
    let body = json!({"content": {"parts": [{"text": "one"}]}});
    let embedded = post(&server, "/v1beta/models/m:embedContent", &body).await;
    assert!(embedded.json()["embedding"]["values"].is_array());

    let file = post(&server, "/v1/files", &json!({})).await.json();
    assert_eq!(file["object"], "file");
    let id = file["id"].as_str().unwrap();
    let got = bare(&server, Method::GET, &format!("/v1/files/{id}")).await;
    assert_eq!(got.json()["id"], id);
    let gone = bare(&server, Method::DELETE, &format!("/v1/files/{id}")).await;
    assert_eq!(gone.json()["deleted"], true);
    let model = bare(&server, Method::GET, "/v1/models/gpt-9").await;
    assert_eq!(model.json()["id"], "gpt-9");
}

/// Sends these bytes and returns the JSON response.
async fn exchange(server: &FaultServer, bytes: &[u8]) -> Value {
    let mut stream = tokio::net::TcpStream::connect(server.address())
        .await
        .unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn an_echo_is_an_exact_copy_of_the_request() {
    let script = FaultScript::default().with_passthrough(AuxiliaryAnswerMode::Echo);
    let server = FaultServer::start(script).unwrap();
    let request = b"PUT /v1/anything%20else?b=2&a=1 HTTP/1.1\r\nHost: h\r\nX-Second: 2\r\nx-first: 1\r\nX-Second: again\r\n\
        Connection: close\r\nContent-Length: 4\r\n\r\n\x00\xff{a";
    let echoed = exchange(&server, request).await;
    assert_eq!(echoed["method"], "PUT");
    assert_eq!(echoed["path"], "/v1/anything%20else");
    assert_eq!(echoed["query"], "b=2&a=1");
    let expected = json!([
        ["Host", "h"],
        ["X-Second", "2"],
        ["x-first", "1"],
        ["X-Second", "again"],
        ["Connection", "close"],
        ["Content-Length", "4"],
    ]);
    assert_eq!(echoed["headers"], expected);
    assert_eq!(echoed["body"]["base64"], "AP97YQ==");
    assert_eq!(
        echoed["body"]["sha256"],
        "e6046136385a8d5c3ad490488a479fa774a58d92967c191490a1069574caaaff"
    );
}

#[tokio::test]
async fn echoes_work_repeatedly_on_one_connection_and_as_steps() {
    let script =
        FaultScript::default().with_step(FaultScriptStep::from(FaultScriptReply::Echo).always());
    let server = FaultServer::start(script).unwrap();
    let one = |number: usize, end: &str| {
        let body = format!("{{\"n\":{number}}}");
        format!(
            "POST /v1/messages HTTP/1.1\r\nX-Number: {number}\r\n{end}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let mut stream = tokio::net::TcpStream::connect(server.address())
        .await
        .unwrap();
    stream.write_all(one(1, "").as_bytes()).await.unwrap();
    let mut first = vec![0; 4096];
    let count = stream.read(&mut first).await.unwrap();
    let first = String::from_utf8_lossy(&first[..count]).into_owned();
    assert!(first.contains("[\"X-Number\",\"1\"]"), "{first}");
    stream
        .write_all(one(2, "Connection: close\r\n").as_bytes())
        .await
        .unwrap();
    let mut second = String::new();
    stream.read_to_string(&mut second).await.unwrap();
    assert!(second.contains("[\"X-Number\",\"2\"]"), "{second}");
    assert!(!second.contains("[\"X-Number\",\"1\"]"), "{second}");
}

#[tokio::test]
async fn a_step_that_names_a_path_matches_auxiliary_queries_too() {
    let script = FaultScript::default()
        .with_step(FaultScriptStep::from(FaultScriptReply::Overloaded).when_path("/models"))
        .with_step(FaultScriptReply::answer("Done"));
    let server = FaultServer::start(script).unwrap();
    assert_eq!(bare(&server, Method::GET, "/v1/models").await.status, 503);
    assert_eq!(bare(&server, Method::GET, "/v1/models").await.status, 200);
    assert_eq!(CHAT.ask(&server).await.status, 200);
}

#[tokio::test]
async fn keys_and_headers_select_the_step() {
    let of_key = |key: &str| RequestCondition {
        key: Some(key.to_owned()),
        ..RequestCondition::default()
    };
    let script = FaultScript::default()
        .with_step(
            FaultScriptStep::from(FaultScriptReply::Auth)
                .when(of_key("sk-bad"))
                .always(),
        )
        .with_step(FaultScriptReply::answer("Done"));
    let server = FaultServer::start(script).unwrap();
    for (name, value, status) in [
        ("x-api-key", "sk-bad", 401),
        ("authorization", "Bearer sk-bad", 401),
        ("authorization", "Bearer sk-good", 200),
    ] {
        let (path, body) = ANTHROPIC.question(false);
        let reached = post_with(&server, (path, &body), (name, value)).await;
        assert_eq!(reached.status, status, "{name}: {value}");
    }
    let request = Request::post("/v1beta/models/m:generateContent?key=sk-bad");
    let reached = send(&server, request.body(Full::from("{}")).unwrap()).await;
    assert_eq!(reached.status, 400);
}

#[tokio::test]
async fn statistics_are_available_over_http() {
    let script = FaultScript::default()
        .with_step(FaultScriptStep::from(FaultScriptReply::Overloaded).times(2))
        .with_step(FaultScriptReply::answer("Done"))
        .without_record();
    let server = FaultServer::start(script).unwrap();
    for _ in 0..3 {
        ANTHROPIC.ask(&server).await;
    }
    bare(&server, Method::GET, "/v1/models").await;
    let stats = bare(&server, Method::GET, "/__faults/stats").await.json();
    assert_eq!(stats["requests"], 4);
    assert_eq!(
        stats["by_reply"],
        json!({"answer": 1, "aside": 1, "overloaded": 2})
    );
    assert_eq!(stats["by_status"], json!({"200": 2, "529": 2}));
    assert_eq!(stats["by_path"]["/v1/messages"], 3);
    assert_eq!(stats["by_model"], json!({"some-model": 3}));
    let seconds = stats["per_second"].as_array().unwrap().iter();
    assert_eq!(seconds.filter_map(Value::as_u64).sum::<u64>(), 4);
    assert!(server.requests().is_empty());

    bare(&server, Method::POST, "/__faults/restart").await;
    assert_eq!(server.stats().requests, 0);
    assert_eq!(ANTHROPIC.ask(&server).await.status, 529);
}

#[tokio::test]
async fn a_client_that_disconnects_is_counted_as_abandoned() {
    for reply in [FaultScriptReply::Hang, FaultScriptReply::Stall] {
        let server = FaultServer::start(FaultScript::default().with_step(reply)).unwrap();
        let asked = tokio::time::timeout(Duration::from_millis(50), ANTHROPIC.stream(&server));
        assert!(asked.await.is_err());
        for _ in 0..400 {
            if server.stats().abandoned == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let stats = server.stats();
        assert_eq!((stats.abandoned, stats.in_flight), (1, 0));
    }
}

#[tokio::test]
async fn usage_is_estimated_from_the_texts_and_ids_are_in_the_headers() {
    let script = r#"
        [[step]]
        answer = { text = "12345678", cache_read_tokens = 1, cache_write_tokens = 1 }
        times = "always"
    "#;
    let server = FaultServer::start(script.parse().unwrap()).unwrap();
    let asked = ANTHROPIC.ask(&server).await;
    // "Fix the tests" has 13 bytes: 4 tokens, of which 2 are cached.
    let usage = json!({
        "input_tokens": 2, "output_tokens": 2, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 1,
    });
    assert_eq!(asked.json()["usage"], usage);
    assert_eq!(asked.json()["model"], "some-model");
    assert_eq!(asked.header("request-id"), Some("req_00000001"));
    let asked = CHAT.stream(&server).await;
    let events = asked.events();
    let usage = &events.last().unwrap()["usage"];
    assert_eq!(usage["prompt_tokens"], 4);
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 1);
    assert_eq!(asked.header("x-request-id"), Some("req_00000002"));
}

#[tokio::test]
async fn requests_are_kept_byte_for_byte() {
    let server = FaultServer::start(FaultScript::answering("Done")).unwrap();
    let body = "{ \"model\" : \"m\",\n \"messages\":[] }";
    let request = Request::post("/v1/messages")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    assert_eq!(send(&server, request).await.end, End::Complete);
    for dialect in DIALECTS {
        dialect.stream(&server).await;
    }
    let requests = server.requests();
    assert_eq!(requests[0].body, body);
    assert_eq!(requests[0].body_sha256.len(), 64);
    assert!(!requests[0].wants_stream && requests[1..].iter().all(|request| request.wants_stream));
}
