//! Malicious and broken clients and upstreams.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use unstuck_gateway::protocol::Protocol::{Anthropic, OpenAi};
use unstuck_gateway::{
    BuiltInKnowledge, Gateway, GatewayError, GatewaySettings, NullRecorder, Secret,
};

use crate::Ground;

const GOOD: &str = "[[step]]\nanswer = { text = \"Done\" }\ntimes = \"always\"\n";
const BODY: &str = r#"{"model":"gpt-x","messages":[{"role":"user","content":"x"}]}"#;

/// Returns the gateway's answer to raw bytes, until it closes the connection or is silent.
async fn raw(ground: &Ground, pieces: &[&str]) -> String {
    let mut stream = TcpStream::connect(ground.gateway.address()).await.unwrap();
    for piece in pieces {
        if stream.write_all(piece.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut read = Vec::new();
    let reading = stream.read_to_end(&mut read);
    let _ = tokio::time::timeout(Duration::from_secs(3), reading).await;
    String::from_utf8_lossy(&read).into_owned()
}

fn asked(host: &str, more: &str) -> String {
    format!(
        "POST /openai/v1/chat/completions HTTP/1.1\r\nhost: {host}\r\n{more}content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{BODY}",
        BODY.len()
    )
}

#[tokio::test]
async fn invalid_http_and_json_are_tolerated() {
    let ground = Ground::new(
        OpenAi,
        &["[[step]]\nwhen = { path = \"/\" }\nstatus = { code = 400 }\ntimes = \"always\"\n"],
    )
    .await;
    for nonsense in [
        "\0\0\0\0\r\n\r\n",
        "GET\r\n\r\n",
        "POST /openai/v1/chat/completions HTTP/9.9\r\n\r\n",
    ] {
        raw(&ground, &[nonsense]).await;
    }
    for body in [
        "",
        "{",
        "null",
        "[]",
        "\"x\"",
        "{\"model\":7,\"stream\":\"yes\",\"messages\":{}}",
        "\u{0}\u{1}",
    ] {
        let reply = ground.post("/openai/v1/chat/completions", body).await;
        assert_eq!(reply.status.as_u16(), 400, "{body}: {reply:?}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let reply = ground.post("/openai/v1/chat/completions", &deep).await;
    assert_eq!(reply.status.as_u16(), 400);
}

#[tokio::test]
async fn too_long_request_is_rejected_with_a_message() {
    let ground = Ground::with(OpenAi, &[GOOD], |settings| settings.max_request = 1 << 20).await;
    let long = format!(
        "{{\"model\":\"gpt-x\",\"messages\":\"{}\"}}",
        "x".repeat(2 << 20)
    );
    let reply = ground.post("/openai/v1/chat/completions", &long).await;
    assert_eq!(reply.status.as_u16(), 413, "{reply:?}");
    assert!(reply.body.contains("1 MiB"), "{}", reply.body);
    assert_eq!(ground.asked(), [0]);
}

#[tokio::test]
async fn slow_request_times_out() {
    let ground = Ground::with(OpenAi, &[GOOD], |settings| {
        settings.limits.request = Duration::from_millis(200);
    })
    .await;
    // Endless headers, and an endless body.
    raw(
        &ground,
        &["POST /openai/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx: "],
    )
    .await;
    let text = raw(&ground, &["POST /openai/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"]).await;
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    assert_eq!(ground.asked(), [0]);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let ground = Ground::new(OpenAi, &[GOOD]).await;
    let one = asked("localhost", "").replace("connection: close\r\n", "");
    let text = raw(&ground, &[&one, &one, &asked("localhost", "")]).await;
    assert_eq!(text.matches("HTTP/1.1 200").count(), 3, "{text}");
    assert_eq!(ground.asked(), [3]);
}

#[tokio::test]
async fn web_pages_and_foreign_hosts_are_rejected() {
    let ground = Ground::new(OpenAi, &[GOOD]).await;
    let text = raw(&ground, &[&asked("evil.example", "")]).await;
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
    let text = raw(
        &ground,
        &[&asked("localhost", "origin: https://evil.example\r\n")],
    )
    .await;
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
    assert_eq!(ground.asked(), [0]);
    let text = raw(
        &ground,
        &[&asked("localhost", "origin: http://localhost:3000\r\n")],
    )
    .await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

/// L6: hosts that one parser takes for this machine, and another for a different name.
#[tokio::test]
async fn ambiguous_host_is_rejected() {
    let ground = Ground::new(OpenAi, &[GOOD]).await;
    for host in [
        "[::1].evil.example",
        "127.0.0.1:1@evil.example",
        "127.0.0.1:80:80",
        "localhost\r\nhost: localhost",
        "localhost\r\nhost: evil.example",
    ] {
        let text = raw(&ground, &[&asked(host, "")]).await;
        assert!(text.starts_with("HTTP/1.1 403"), "{host}: {text}");
    }
    let elsewhere = asked("localhost", "").replace("POST /", "POST http://evil.example/");
    let text = raw(&ground, &[&elsewhere]).await;
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
    assert_eq!(ground.asked(), [0]);
}

/// L4: with the injected key, a path must not reach anything above the base URL of the upstream.
#[tokio::test]
async fn paths_stay_below_the_upstream_base_url() {
    let ground = Ground::with(OpenAi, &[GOOD], |settings| {
        settings.upstreams[0].key = Some(Secret::new("0wners-key"));
    })
    .await;
    for path in [
        "/openai/v1/../../admin",
        "/openai/v1/..",
        "/openai/v1/%2e%2e/%2e%2e/admin",
        "/openai/v1/..%2f..%2fadmin",
        "/openai/v1/%252e%252e/admin",
        "/openai/v1/..\\..\\admin",
        "/openai/v1/..%5cadmin",
        "/s/a/openai/v1/../../../admin",
        "/openai/v1/..;/admin",
    ] {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let text = raw(&ground, &[&request]).await;
        assert!(text.starts_with("HTTP/1.1 400"), "{path}: {text}");
    }
    assert_eq!(ground.asked(), [0]);
    let twice = ground.post("/openai/v1//chat/completions", BODY).await;
    assert_eq!(twice.status.as_u16(), 200, "{twice:?}");
    let path = ground.upstreams[0].requests()[0].path.clone();
    assert_eq!(path, "/v1/chat/completions");
}

/// L3: the client's key is meant for its own API, not for a fallback.
#[tokio::test]
async fn fallback_does_not_get_the_client_key() {
    let down = "[[step]]\nserver_error = {}\ntimes = \"always\"\n";
    for protocol in [OpenAi, Anthropic] {
        let ground = Ground::new(protocol, &[down, GOOD]).await;
        let path = match protocol {
            OpenAi => "/openai/v1/chat/completions",
            _ => "/anthropic/v1/messages",
        };
        let more = [
            ("content-type", "application/json"),
            ("x-goog-api-key", "key-1"),
            ("api-key", "key-1"),
            ("cookie", "session=key-1"),
        ];
        let reply = ground.send(hyper::Method::POST, path, &more, BODY).await;
        assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
        let (first, second) = (
            &ground.upstreams[0].requests()[0],
            &ground.upstreams[1].requests()[0],
        );
        for name in [
            "authorization",
            "x-api-key",
            "x-goog-api-key",
            "api-key",
            "cookie",
        ] {
            assert!(
                first.header(name).is_some(),
                "{name} is passed on: {first:?}"
            );
            assert!(
                second.header(name).is_none(),
                "{name} stays here: {second:?}"
            );
        }
    }
}

/// The gateway's token is not sent to the provider, wherever a client puts it.
#[tokio::test]
async fn gateway_token_is_not_forwarded() {
    let ground = Ground::with(OpenAi, &[GOOD], |settings| {
        settings.token = Some(Secret::new("t0ken"));
    })
    .await;
    let text = raw(&ground, &[&asked("a", "authorization: Bearer t0ken\r\n")]).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let request = &ground.upstreams[0].requests()[0];
    assert!(request.header("authorization").is_none(), "{request:?}");
}

#[tokio::test]
async fn remote_access_needs_a_token() {
    let ground = Ground::with(OpenAi, &[GOOD], |settings| {
        settings.token = Some(Secret::new("t0ken"))
    })
    .await;
    for more in [
        "",
        "x-unstuck-token: wrong\r\n",
        "x-unstuck-token: t0ke\r\n",
    ] {
        let text = raw(&ground, &[&asked("localhost", more)]).await;
        assert!(text.starts_with("HTTP/1.1 401"), "{more}: {text}");
    }
    let text = raw(&ground, &[&asked("my.host", "x-unstuck-token: t0ken\r\n")]).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(
        ground.upstreams[0].requests()[0]
            .header("x-unstuck-token")
            .is_none()
    );
    let mut open = GatewaySettings::new(Vec::new());
    open.listen = ([0, 0, 0, 0], 0).into();
    let refused = Gateway::start(
        open,
        Arc::new(BuiltInKnowledge::default()),
        Arc::new(NullRecorder),
    )
    .await;
    assert!(matches!(
        refused.err(),
        Some(GatewayError::TokenRequired(_))
    ));
}

#[tokio::test]
async fn headers_cannot_be_smuggled() {
    let ground = Ground::new(OpenAi, &[GOOD]).await;
    let text = raw(
        &ground,
        &["POST /openai/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /secret HTTP/1.1\r\n\r\n"],
    )
    .await;
    assert!(!text.contains("secret"), "{text}");
    let more = "connection: x-hop\r\nx-hop: 1\r\nproxy-authorization: Basic abc\r\n";
    raw(&ground, &[&asked("localhost", more)]).await;
    let requests = ground.upstreams[0].requests();
    let last = requests.last().unwrap();
    assert!(
        last.header("x-hop").is_none() && last.header("proxy-authorization").is_none(),
        "{last:?}"
    );
}

/// The lengths stated by an upstream are not trusted: the call is recovered, or the client gets an error.
#[tokio::test]
async fn wrong_upstream_lengths_are_not_trusted() {
    for fault in [
        "wrong_length = { by = 100 }",
        "wrong_length = { by = -10 }",
        "bad_framing = {}",
        "not_http = {}",
        "malformed = {}",
        "invalid_json = {}",
        "html = { status = 200 }",
        "html = { status = 502 }",
        "close = {}",
        "reset = { by = \"after_headers\" }",
        "reset = { by = \"mid_body\" }",
    ] {
        let ground = Ground::with(
            OpenAi,
            &[&format!("[[step]]\n{fault}\n\n{GOOD}")],
            |settings| {
                settings.limits.stall = Duration::from_millis(500);
            },
        )
        .await;
        let reply = ground.chat(false).await;
        assert_eq!(reply.status.as_u16(), 200, "{fault}: {reply:?}");
        assert!(reply.body.contains("Done"), "{fault}: {}", reply.body);
        assert_eq!(ground.asked(), [2], "{fault}");
    }
}

#[tokio::test]
async fn permanent_failures_are_reported_at_once() {
    for (fault, status) in [
        ("auth = {}", 401),
        ("auth_expired = {}", 401),
        ("quota = {}", 429),
    ] {
        let ground = Ground::new(
            OpenAi,
            &[&format!("[[step]]\n{fault}\ntimes = \"always\"\n")],
        )
        .await;
        let reply = ground.chat(false).await;
        assert_eq!(
            (reply.status.as_u16(), ground.asked()),
            (status, vec![1]),
            "{fault}: {reply:?}"
        );
        assert_eq!(reply.header("x-should-retry"), "false", "{fault}");
    }
}

/// A reset further away than the client waits is reported at once, with its time.
#[tokio::test]
async fn distant_reset_is_reported_at_once() {
    let script = "[[step]]\nusage_limit = { resets_in = \"5h\" }\ntimes = \"always\"\n";
    for protocol in [OpenAi, Anthropic] {
        let ground = Ground::new(protocol, &[script]).await;
        let reply = match protocol {
            OpenAi => ground.chat(false).await,
            _ => ground.post("/anthropic/v1/messages", BODY).await,
        };
        assert_eq!(
            (reply.status.as_u16(), ground.asked()),
            (429, vec![1]),
            "{reply:?}"
        );
        let wait: u64 = reply.header("retry-after").parse().unwrap();
        assert!((17_000..=18_100).contains(&wait), "{wait}");
        assert_eq!(reply.header("x-should-retry"), "false");
        assert_eq!(ground.failures(), ["rate_limit_timed"]);
    }
}

/// Retries made by the client are subtracted, and a client that does not wait is not held.
#[tokio::test]
async fn client_retries_reduce_gateway_retries() {
    let ground = Ground::new(
        OpenAi,
        &["[[step]]\nserver_error = {}\ntimes = \"always\"\n"],
    )
    .await;
    let headers = [("x-stainless-retry-count", "2")];
    let reply = ground
        .send(
            hyper::Method::POST,
            "/openai/v1/chat/completions",
            &headers,
            BODY,
        )
        .await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (500, vec![1]),
        "{reply:?}"
    );
    let ground = Ground::new(
        OpenAi,
        &["[[step]]\nrate_limit = { retry_after = 30 }\ntimes = \"always\"\n"],
    )
    .await;
    let headers = [("x-stainless-timeout", "10")];
    let reply = ground
        .send(
            hyper::Method::POST,
            "/openai/v1/chat/completions",
            &headers,
            BODY,
        )
        .await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (429, vec![1]),
        "{reply:?}"
    );
    assert_eq!(reply.header("retry-after"), "30");
}

/// A client that states its timeout gets an error before it leaves, even if the upstream is silent.
#[tokio::test]
async fn client_with_stated_timeout_gets_an_error_in_time() {
    let silent = "[[step]]\nhang = {}\ntimes = \"always\"\n";
    let ground = Ground::new(OpenAi, &[silent, silent]).await;
    let headers = [("x-stainless-timeout", "2")];
    let path = "/openai/v1/chat/completions";
    let asked = ground.send(hyper::Method::POST, path, &headers, BODY);
    let reply = tokio::time::timeout(Duration::from_secs(2), asked).await;
    let reply = reply.expect("it is told in time");
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (504, vec![1, 0]),
        "{reply:?}"
    );
    assert_eq!(reply.header("x-should-retry"), "false");
    assert_eq!(ground.failures(), ["timeout"]);
    assert!(
        ground
            .reason()
            .contains("The client timeout is shorter than the wait")
    );
}

/// Keep-alive bytes hold the client of a stream, and the call recovers.
#[tokio::test]
async fn keep_alive_holds_a_client_that_would_leave() {
    let script = "[[step]]\nhang = {}\n\n[[step]]\nanswer = { text = \"Done\" }\n";
    let ground = Ground::with(OpenAi, &[script], |settings| {
        settings.limits.response = Duration::from_millis(1500);
    })
    .await;
    let headers = [("x-stainless-timeout", "2")];
    let body = BODY.replacen('{', "{\"stream\":true,", 1);
    let path = "/openai/v1/chat/completions";
    let reply = ground
        .send(hyper::Method::POST, path, &headers, &body)
        .await;
    assert_eq!(ground.asked(), [2], "{reply:?}");
    assert!(reply.body.starts_with(": keep-alive"), "{}", reply.body);
    assert!(reply.body.contains("[DONE]"), "{}", reply.body);
}
