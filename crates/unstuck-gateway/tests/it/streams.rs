//! Streams cut at every boundary in each protocol, and clients that go away or are held.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use unstuck_core::event::ApiCallOutcome;
use unstuck_gateway::protocol::Protocol::{self, Anthropic, Gemini, OpenAi};

use crate::ground::{Ground, Reply};

/// One way to request a stream: the path, the body, the end marker and the error marker.
pub(crate) struct Api {
    pub(crate) name: &'static str,
    pub(crate) protocol: Protocol,
    pub(crate) path: &'static str,
    pub(crate) body: &'static str,
    pub(crate) end: &'static str,
    pub(crate) error: &'static str,
}

pub(crate) const APIS: [Api; 4] = [
    Api {
        name: "messages",
        protocol: Anthropic,
        path: "/anthropic/v1/messages",
        body: r#"{"model":"claude-x","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"Fix"}]}"#,
        end: "message_stop",
        error: "event: error",
    },
    Api {
        name: "chat",
        protocol: OpenAi,
        path: "/openai/v1/chat/completions",
        body: r#"{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"Fix"}]}"#,
        end: "[DONE]",
        error: "\"error\":",
    },
    Api {
        name: "responses",
        protocol: OpenAi,
        path: "/openai/v1/responses",
        body: r#"{"model":"gpt-x","stream":true,"input":"Fix"}"#,
        end: "response.completed",
        error: "response.failed",
    },
    Api {
        name: "generate",
        protocol: Gemini,
        path: "/gemini/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
        body: r#"{"contents":[{"role":"user","parts":[{"text":"Fix"}]}]}"#,
        end: "\"finishReason\"",
        error: "\"error\":",
    },
];

const GOOD: &str = "[pace]\nchunks = 3\nchunk_bytes = 5\n\n[[step]]\nanswer = { text = \"All is well.\" }\ntimes = \"always\"\n";

fn frames(reply: &Reply) -> usize {
    let text = reply.body.replace("\r\n", "\n");
    text.split("\n\n").filter(|frame| !frame.is_empty()).count()
}

#[tokio::test]
async fn stream_is_passed_on_unchanged() {
    for api in APIS {
        let ground = Ground::new(api.protocol, &[GOOD]).await;
        let reply = ground.post(api.path, api.body).await;
        assert_eq!(reply.status.as_u16(), 200, "{}: {reply:?}", api.name);
        assert!(
            reply.body.contains(api.end) && !reply.body.contains(api.error),
            "{}: {}",
            api.name,
            reply.body
        );
        let record = ground.record().await;
        assert_eq!(
            (record.outcome, record.sent_bytes),
            (ApiCallOutcome::Answered, reply.body.len() as u64)
        );
        assert!(
            record.tokens.is_some() || api.name == "chat",
            "{}",
            api.name
        );
    }
}

/// A stream that is cut anywhere is either recovered invisibly or ends with the protocol's error: it never looks
/// complete.
#[tokio::test]
async fn stream_cut_at_any_frame_is_recovered_or_reported() {
    for api in APIS {
        let ground = Ground::new(api.protocol, &[GOOD]).await;
        let whole = frames(&ground.post(api.path, api.body).await);
        assert!(whole >= 3, "{}", api.name);
        for by in ["end", "close"] {
            for after in 0..whole {
                let script = GOOD.replace(
                    "[[step]]",
                    &format!("[[step]]\ncut_at = {{ after = {after}, by = \"{by}\" }}\n\n[[step]]"),
                );
                let ground = Ground::new(api.protocol, &[&script]).await;
                let reply = ground.post(api.path, api.body).await;
                let place = format!(
                    "{} cut by {by} after {after} of {whole}: {}",
                    api.name, reply.body
                );
                assert_eq!(reply.status.as_u16(), 200, "{place}");
                let is_told = reply.body.contains(api.error);
                match ground.asked()[0] {
                    // It has a finish reason, and HTTP ended properly: only the end marker is missing.
                    1 if by == "end" && !is_told => {
                        let reasons = ["finish_reason\":\"stop", "stop_reason\":\"end_turn"];
                        let is_finished = reasons.iter().any(|one| reply.body.contains(one));
                        assert!(is_finished, "{place}");
                    }
                    1 => assert!(is_told, "{place}"),
                    2 => assert!(!is_told && reply.body.contains(api.end), "{place}"),
                    other => panic!("asked {other} times: {place}"),
                }
                let expected = match (is_told, ground.asked()[0]) {
                    (true, _) => ApiCallOutcome::Truncated,
                    (false, 1) => ApiCallOutcome::Answered,
                    (false, _) => ApiCallOutcome::Recovered,
                };
                assert_eq!(ground.record().await.outcome, expected, "{place}");
            }
        }
    }
}

/// A client that goes away cancels the call; the usage reported so far is counted.
#[tokio::test]
async fn leaving_client_cancels_the_call() {
    let slow = "[pace]\nchunks = 100\nchunk_bytes = 5\nbetween = \"20ms\"\n\n[[step]]\nanswer = { input_tokens = 1000000 }\ntimes = \"always\"\n";
    let ground = Ground::new(Anthropic, &[slow]).await;
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<bytes::Bytes>>();
    let api = &APIS[0];
    let request = Request::post(format!("http://{}{}", ground.gateway.address(), api.path))
        .body(Full::from(
            api.body.replace("claude-x", "claude-sonnet-5-5"),
        ))
        .unwrap();
    let mut response = client.request(request).await.unwrap();
    response.body_mut().frame().await.unwrap().unwrap();
    drop(response);
    drop(client);
    let record = tokio::time::timeout(Duration::from_secs(5), ground.record())
        .await
        .unwrap();
    assert_eq!(record.outcome, ApiCallOutcome::Cancelled);
    assert_eq!(record.tokens.map(|tokens| tokens.input), Some(1_000_000));
    assert!(record.cost_usd.is_some_and(|usd| usd > 1.0), "{record:?}");
    let session = &ground.gateway.sessions()[0];
    assert_eq!(Some(session.spent()), record.cost_usd);
}

/// A client held for long gets keep-alive bytes, and then the stream.
#[tokio::test]
async fn held_client_gets_keep_alives() {
    for api in &APIS[..3] {
        let script = GOOD.replace(
            "[[step]]",
            "[[step]]\nrate_limit_as = { form = \"millis\", wait = \"600ms\" }\n\n[[step]]",
        );
        let ground = Ground::with(api.protocol, &[&script], |settings| {
            settings.limits.keep_alive = Duration::from_millis(100);
        })
        .await;
        let reply = ground.post(api.path, api.body).await;
        assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
        let sign = if api.name == "messages" {
            "event: ping"
        } else {
            ": keep-alive"
        };
        assert!(
            reply.body.matches(sign).count() >= 3,
            "{}: {}",
            api.name,
            reply.body
        );
        assert!(
            reply.body.contains(api.end) && !reply.body.contains(api.error),
            "{}: {}",
            api.name,
            reply.body
        );
    }
}

/// An agent that waits in silence gets, when its call fails, an error that keeps it from retrying.
#[tokio::test]
async fn waiting_agent_gets_a_stop_status_after_a_failed_hold() {
    for (api, client, status) in [
        (&APIS[0], "claude-cli/2.1.325 (external, sdk-cli)", 503),
        (&APIS[2], "codex_exec/0.166.0 (Linux)", 400),
    ] {
        let ground = Ground::with(
            api.protocol,
            &["[[step]]\nstatus = { code = 503 }\ntimes = \"always\"\n"],
            |settings| {
                settings.limits.keep_alive = Duration::from_millis(50);
                settings.policy.backoff_base = 0.2;
                settings.policy.max_backoff = 0.2;
            },
        )
        .await;
        let headers = [("user-agent", client)];
        let reply = (ground.send(Method::POST, api.path, &headers, api.body)).await;
        assert_eq!(reply.status.as_u16(), status, "{client}: {reply:?}");
        assert_eq!(reply.header("x-should-retry"), "false", "{client}");
    }
}

/// If recovery fails, a held client gets the error as part of the stream.
#[tokio::test]
async fn held_client_gets_a_stream_error_if_recovery_fails() {
    for api in &APIS[..3] {
        let ground = Ground::with(
            api.protocol,
            &["[[step]]\nstatus = { code = 503 }\ntimes = \"always\"\n"],
            |settings| {
                settings.limits.keep_alive = Duration::from_millis(50);
                settings.policy.backoff_base = 0.2;
                settings.policy.max_backoff = 0.2;
            },
        )
        .await;
        let reply = ground.post(api.path, api.body).await;
        assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
        assert!(
            reply.body.contains(api.error) && !reply.body.contains(api.end),
            "{}: {}",
            api.name,
            reply.body
        );
    }
}
