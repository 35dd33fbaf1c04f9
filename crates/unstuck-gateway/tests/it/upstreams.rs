//! TLS and HTTP/2, with upstreams and with clients.

use std::fs;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Version};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use unstuck_gateway::protocol::Protocol::{self, Anthropic, OpenAi};
use unstuck_gateway::{GatewaySettings, Upstream};

use crate::Ground;
use crate::ground::script;

const BODY: &str = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;

/// Returns a gateway with a TLS upstream, whose certificate is trusted or not.
async fn secured(protocol: Protocol, tls: &str, steps: &str, is_believed: bool) -> Ground {
    let server = script(&format!("[tls]\n{tls}\n{steps}"));
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("ca.pem");
    fs::write(&pem, server.certificate().unwrap()).unwrap();
    let base = match protocol {
        OpenAi => format!("{}/v1", server.tls_url().unwrap()),
        _ => server.tls_url().unwrap(),
    };
    let change = |settings: &mut GatewaySettings| {
        settings.upstreams = vec![Upstream::new("u0", protocol, &base).unwrap()];
        if is_believed {
            settings.network.authorities = vec![pem];
        }
    };
    let mut ground = Ground::with(protocol, &[], change).await;
    ground.upstreams.push(server);
    ground
}

const ANSWERS: &str = "[[step]]\nanswer = { text = \"Hello there.\" }\ntimes = \"always\"\n";

/// A stream and a whole response over TLS; HTTP/2 is negotiated, and all calls share one connection.
#[tokio::test]
async fn upstream_is_called_over_tls_and_http_2() {
    let ground = secured(OpenAi, "", ANSWERS, true).await;
    for stream in [false, true, false] {
        let reply = ground.chat(stream).await;
        assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
        assert!(reply.body.contains("Hello") || reply.body.contains("there"));
        assert!(!stream || reply.body.ends_with("data: [DONE]\n\n"));
    }
    for request in ground.upstreams[0].requests() {
        // Only HTTP/1.1 has such a header.
        assert_eq!(request.header("host"), None);
    }
}

/// Failures within TLS are retried like others, and a stream that is cut there is reported.
#[tokio::test]
async fn failures_behind_tls_are_retried_and_cut_streams_reported() {
    let steps = format!(
        "[[step]]\noverloaded = {{}}\n[[step]]\nanswer = {{}}\n[[step]]\ncut_at = {{ after = 3 }}\n{ANSWERS}"
    );
    let ground = secured(OpenAi, "", &steps, true).await;
    let reply = ground.chat(false).await;
    assert_eq!(
        (reply.status.as_u16(), reply.header("x-unstuck-attempts")),
        (200, "2")
    );
    let reply = ground.chat(true).await;
    assert!(!reply.body.contains("[DONE]"), "{}", reply.body);
    assert!(reply.body.contains("\"error\""), "{}", reply.body);
}

/// An untrusted certificate gets one attempt, and the client is told what to do.
#[tokio::test]
async fn untrusted_certificate_fails_at_once() {
    for (tls, believed, told) in [
        ("", false, "SSL_CERT_FILE"),
        ("certificate = \"expired\"", true, "check the system clock"),
        (
            "certificate = \"wrong_host\"",
            true,
            "check the URL of the upstream",
        ),
    ] {
        let ground = secured(Anthropic, tls, ANSWERS, believed).await;
        let reply = ground.post("/anthropic/v1/messages", BODY).await;
        assert_eq!(reply.status.as_u16(), 502, "{reply:?}");
        assert_eq!(reply.header("x-unstuck-attempts"), "1");
        assert_eq!(reply.header("x-should-retry"), "false");
        for part in ["invalid peer certificate", told, "certificate_error"] {
            assert!(reply.body.contains(part), "{part} in {}", reply.body);
        }
        assert_eq!(ground.asked(), [0]);
        assert_eq!(ground.failures(), ["certificate_error"]);
    }
}

/// A failed handshake may work the next time; if it never does, the call fails.
#[tokio::test]
async fn failed_handshake_is_retried_a_limited_number_of_times() {
    for how in ["garbage", "close", "reset"] {
        let once = secured(
            OpenAi,
            &format!("fails = 1\nhow = \"{how}\""),
            ANSWERS,
            true,
        )
        .await;
        let reply = once.chat(true).await;
        assert_eq!(reply.status.as_u16(), 200, "{how}: {reply:?}");
        assert_eq!(once.failures(), ["network_error"], "{how}");
        let never = secured(
            OpenAi,
            &format!("fails = \"always\"\nhow = \"{how}\""),
            ANSWERS,
            true,
        )
        .await;
        let reply = never.chat(true).await;
        assert_eq!(reply.status.as_u16(), 502, "{how}: {reply:?}");
        assert_eq!(reply.header("x-unstuck-attempts"), "3", "{how}");
        assert!(reply.body.contains("network_error"), "{}", reply.body);
    }
}

/// A client may speak HTTP/2 from its first byte on, with several concurrent calls on one connection.
#[tokio::test]
async fn client_may_use_http_2() {
    let ground = Ground::new(OpenAi, &[ANSWERS]).await;
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http::<Full<Bytes>>();
    let url = format!(
        "http://{}/openai/v1/chat/completions",
        ground.gateway.address()
    );
    let ask = |stream: bool| {
        let body = format!(
            r#"{{"model":"m","stream":{stream},"messages":[{{"role":"user","content":"x"}}]}}"#
        );
        let request = Request::post(&url)
            .header("authorization", "Bearer key-1")
            .body(Full::from(body))
            .unwrap();
        let response = client.request(request);
        async move {
            let (head, body) = response.await.unwrap().into_parts();
            assert_eq!((head.status.as_u16(), head.version), (200, Version::HTTP_2));
            assert_eq!(head.headers["x-unstuck-attempts"], "1");
            let body = body.collect().await.unwrap().to_bytes();
            String::from_utf8(body.to_vec()).unwrap()
        }
    };
    let (whole, stream, other) = tokio::join!(ask(false), ask(true), ask(true));
    assert!(whole.contains("Hello there."), "{whole}");
    assert!(stream.ends_with("data: [DONE]\n\n"), "{stream}");
    assert!(other.ends_with("data: [DONE]\n\n"), "{other}");
}
