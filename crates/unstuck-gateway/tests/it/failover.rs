//! Responses and upstream requests for each fault, with two retries and one fallback.

use std::time::Duration;

use tokio::time::Instant;
use unstuck_core::event::ApiCallOutcome;
use unstuck_gateway::protocol::Protocol::{Gemini, OpenAi};
use unstuck_gateway::{GatewaySettings, UpstreamUnsupportedFeatures};

use crate::Ground;
use crate::ground::impatient;

const GOOD: &str = "[[step]]\nanswer = { text = \"Done\" }\ntimes = \"always\"\n";

fn always(fault: &str) -> String {
    format!("[[step]]\n{fault}\ntimes = \"always\"\n")
}

fn once(fault: &str) -> String {
    format!("[[step]]\n{fault}\n\n{GOOD}")
}

/// S4-01, S4-33: 1. a rate limit with a stated wait is waited out, and the same upstream answers.
#[tokio::test]
async fn stated_wait_is_waited_out() {
    let ground = Ground::new(
        OpenAi,
        &[
            &once("rate_limit_as = { form = \"millis\", wait = \"200ms\" }"),
            GOOD,
        ],
    )
    .await;
    let start = Instant::now();
    let reply = ground.chat(false).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![2, 0]),
        "{reply:?}"
    );
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert_eq!(reply.header("x-unstuck-attempts"), "2");
    assert_eq!(ground.failures(), ["rate_limit"]);
}

/// S4-03: 2. a persistent rate limit gets three attempts, then the fallback answers.
#[tokio::test]
async fn persistent_rate_limit_uses_the_fallback() {
    let ground = Ground::new(OpenAi, &[&always("rate_limit = {}"), GOOD]).await;
    let reply = ground.chat(false).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![3, 1]),
        "{reply:?}"
    );
}

/// S4-01: 3. a transient server error is invisible to the client.
#[tokio::test]
async fn transient_server_error_is_invisible() {
    let ground = Ground::new(OpenAi, &[&once("server_error = {}"), GOOD]).await;
    let reply = ground.chat(false).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![2, 0]),
        "{reply:?}"
    );
    assert_eq!(ground.record().await.outcome, ApiCallOutcome::Recovered);
}

/// S4-03: 4. an upstream that is down gets three attempts, then the fallback answers.
#[tokio::test]
async fn upstream_that_is_down_uses_the_fallback() {
    let ground = Ground::new(OpenAi, &[&always("status = { code = 503 }"), GOOD]).await;
    let reply = ground.chat(false).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![3, 1]),
        "{reply:?}"
    );
}

/// 5. a reset connection is opened again.
#[tokio::test]
async fn reset_connection_is_reopened() {
    let ground = Ground::new(
        OpenAi,
        &[&once("reset = { by = \"before_headers\" }"), GOOD],
    )
    .await;
    let reply = ground.chat(false).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![2, 0]),
        "{reply:?}"
    );
    assert_eq!(ground.failures(), ["network_error"]);
}

/// 6. no response at all is a timeout: the fallback is used before the silent upstream is retried.
#[tokio::test]
async fn silence_is_a_timeout() {
    let ground = Ground::with(OpenAi, &[&once("hang = {}"), GOOD], impatient).await;
    let reply = ground.chat(true).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![1, 1]),
        "{reply:?}"
    );
    assert_eq!(ground.failures(), ["timeout"]);
    let ground = Ground::with(OpenAi, &[&once("hang = {}")], impatient).await;
    let reply = ground.chat(true).await;
    assert_eq!((reply.status.as_u16(), ground.asked()), (200, vec![2]));
}

/// 7. a late first token of a stream is a timeout, and the call is retried elsewhere invisibly; pings are ignored.
#[tokio::test]
async fn slow_first_token_fails_over_invisibly() {
    let fault = once("slow_first_token = { wait = \"30s\", pings = \"50ms\" }");
    let ground = Ground::with(OpenAi, &[&fault, GOOD], impatient).await;
    let reply = ground.chat(true).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![1, 1]),
        "{reply:?}"
    );
    assert!(
        reply.body.contains("[DONE]") && !reply.body.contains("error"),
        "{}",
        reply.body
    );
    assert_eq!(ground.failures(), ["timeout"]);
}

/// 8. a stream that is cut after content ends with an error, and is not retried.
#[tokio::test]
async fn truncated_stream_never_looks_complete() {
    for by in ["close", "end", "reset"] {
        let fault = always(&format!("cut_at = {{ after = 4, by = \"{by}\" }}"));
        let ground = Ground::new(OpenAi, &[&fault, GOOD]).await;
        let reply = ground.chat(true).await;
        assert_eq!(
            (reply.status.as_u16(), ground.asked()),
            (200, vec![1, 0]),
            "{by} {reply:?}"
        );
        assert!(
            reply.body.contains("\"error\"") && !reply.body.contains("[DONE]"),
            "{by}: {}",
            reply.body
        );
        let record = ground.record().await;
        assert_eq!(record.outcome, ApiCallOutcome::Truncated);
        assert!(record.sent_bytes > 0);
    }
}

/// 9. a stream that stalls after content ends with an error.
#[tokio::test]
async fn stalled_stream_ends_with_an_error() {
    let fault = always("stall_at = { after = 4, pings = \"50ms\" }");
    let ground = Ground::with(OpenAi, &[&fault, GOOD], impatient).await;
    let reply = ground.chat(true).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![1, 0]),
        "{reply:?}"
    );
    assert!(
        reply.body.contains("\"error\"") && reply.body.contains("stalled"),
        "{}",
        reply.body
    );
}

/// 10. a malformed chunk ends the stream with an error and is not passed on.
#[tokio::test]
async fn malformed_chunk_ends_the_stream_with_an_error() {
    let ground = Ground::new(OpenAi, &[&always("bad_chunk = { after = 4 }"), GOOD]).await;
    let reply = ground.chat(true).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![1, 0]),
        "{reply:?}"
    );
    assert!(
        reply.body.contains("\"error\"") && !reply.body.contains("[DONE]"),
        "{}",
        reply.body
    );
    for line in reply
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
    {
        serde_json::from_str::<serde_json::Value>(line).expect(line);
    }
}

/// 11. a stream with a finish reason and a proper HTTP end is complete without its end marker.
#[tokio::test]
async fn missing_end_marker_is_no_error() {
    let ground = Ground::new(OpenAi, &[&always("missing_end = {}"), GOOD]).await;
    let reply = ground.chat(true).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![1, 0]),
        "{reply:?}"
    );
    assert!(!reply.body.contains("\"error\""), "{}", reply.body);
    assert_eq!(ground.record().await.outcome, ApiCallOutcome::Answered);
}

/// 11b. … but one without a finish reason is truncated.
#[tokio::test]
async fn stream_without_finish_reason_is_truncated() {
    let fault = always("missing_end = { reason_too = true }");
    let ground = Ground::new(OpenAi, &[&fault, GOOD]).await;
    let reply = ground.chat(true).await;
    assert_eq!(ground.asked(), [1, 0], "{reply:?}");
    assert!(reply.body.contains("\"error\""), "{}", reply.body);
    assert_eq!(ground.record().await.outcome, ApiCallOutcome::Truncated);
}

/// S4-23: 12. a prompt that is too long is not retried, nor sent where the context is no larger.
#[tokio::test]
async fn too_long_prompt_fails_at_once() {
    let ground = Ground::new(OpenAi, &[&always("context_limit = {}"), GOOD]).await;
    let reply = ground.chat(false).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (400, vec![1, 0]),
        "{reply:?}"
    );
    assert_eq!(reply.header("x-should-retry"), "false");
}

/// 12b. … but an upstream with a larger context is used.
#[tokio::test]
async fn too_long_prompt_fails_over_to_a_larger_context() {
    let room = |settings: &mut GatewaySettings| {
        settings.upstreams[0].context = Some(1000);
        settings.upstreams[1].context = Some(100_000);
    };
    let ground = Ground::with(OpenAi, &[&always("context_limit = {}"), GOOD], room).await;
    let reply = ground.chat(false).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![1, 1]),
        "{reply:?}"
    );
}

/// 13. a refusal by a safety policy is not routed around unless configured.
#[tokio::test]
async fn refusal_is_not_routed_around() {
    let scripts = [&*always("content_filter = {}"), GOOD];
    let ground = Ground::new(OpenAi, &scripts).await;
    let reply = ground.chat(false).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (400, vec![1, 0]),
        "{reply:?}"
    );
    let around = |settings: &mut GatewaySettings| settings.route_around_refusals = true;
    let ground = Ground::with(OpenAi, &scripts, around).await;
    let reply = ground.chat(false).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![1, 1]),
        "{reply:?}"
    );
}

/// 14. a fallback without prefill support is skipped for a prefilled response.
#[tokio::test]
async fn fallback_without_prefill_is_skipped() {
    let lacks = |settings: &mut GatewaySettings| {
        settings.upstreams[1].missing = UpstreamUnsupportedFeatures {
            prefill: true,
            ..UpstreamUnsupportedFeatures::default()
        };
    };
    let scripts = [
        &*always("overloaded = {}"),
        "[[step]]\nprefill_rejected = {}\ntimes = \"always\"\n",
    ];
    let ground = Ground::with(
        unstuck_gateway::protocol::Protocol::Anthropic,
        &scripts,
        lacks,
    )
    .await;
    let begun = r#"{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"JSON"},{"role":"assistant","content":"{"}]}"#;
    let reply = ground.post("/anthropic/v1/messages", begun).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (529, vec![3, 0]),
        "{reply:?}"
    );
    assert_eq!(reply.header("x-should-retry"), "false");
}

/// 15. a flapping primary is used again whenever it works: twenty requests, twenty responses, none from the fallback.
#[tokio::test]
async fn flapping_primary_is_used_again() {
    let mut flapping = String::new();
    for _ in 0..20 {
        flapping
            .push_str("[[step]]\nserver_error = {}\n\n[[step]]\nanswer = { text = \"Done\" }\n\n");
    }
    let ground = Ground::new(OpenAi, &[&flapping, GOOD]).await;
    for number in 0..20 {
        let reply = ground.chat(false).await;
        assert_eq!(reply.status.as_u16(), 200, "{number}: {reply:?}");
    }
    assert_eq!(ground.asked(), [40, 0]);
}

/// 16. attempts, tokens and cost are recorded.
#[tokio::test]
async fn attempts_tokens_and_cost_are_recorded() {
    let good = "[[step]]\nserver_error = {}\n\n[[step]]\nanswer = { text = \"Done\", input_tokens = 1000000, output_tokens = 100000 }\n";
    let ground = Ground::new(OpenAi, &[good]).await;
    let body = r#"{"model":"gpt-6.1-terra","messages":[{"role":"user","content":"x"}]}"#;
    let reply = ground.post("/openai/v1/chat/completions", body).await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
    let record = ground.record().await;
    assert_eq!(record.attempts, 2);
    let tokens = record.tokens.unwrap();
    assert_eq!(
        (tokens.input + tokens.cached, tokens.output),
        (1_000_000, 100_000)
    );
    let catalog = unstuck_core::decision::ModelCatalog::embedded();
    let expected = catalog.find("gpt-6.1-terra").unwrap().cost(tokens);
    assert_eq!(record.cost_usd, expected);
    assert!(expected.is_some_and(|usd| usd > 0.0));
}

/// An agent that would retry anyway is stopped by a status that it respects.
#[tokio::test]
async fn retrying_agent_is_stopped() {
    let openai = (OpenAi, "/openai/v1/responses");
    let gemini = (Gemini, "/gemini/v1beta/models/gemini-3-pro:generateContent");
    for ((protocol, path), client, status) in [
        (openai, "codex_exec/0.166.0 (Linux)", 400),
        (openai, "python-httpx/1.0", 500),
        (gemini, "GeminiCLI-tui/0.61.0/gemini-3-pro (linux)", 400),
        (gemini, "google-genai-sdk/3.1.0", 500),
    ] {
        let ground = Ground::new(protocol, &[&always("server_error = {}")]).await;
        let headers = [("user-agent", client)];
        let body = r#"{"model":"gpt-x","input":"x"}"#;
        let reply = ground.send(hyper::Method::POST, path, &headers, body).await;
        assert_eq!(
            (reply.status.as_u16(), ground.asked()),
            (status, vec![3]),
            "{client}: {reply:?}"
        );
        assert_eq!(reply.header("x-should-retry"), "false");
    }
}

/// So is one where waiting does not help: agents take exhausted credit for a rate limit, and retry for a missing model.
#[tokio::test]
async fn retrying_agent_is_stopped_if_waiting_does_not_help() {
    for (client, path, fault, status) in [
        (
            "QwenCode/0.24.4 (linux; x64)",
            "chat/completions",
            "quota",
            401,
        ),
        ("opencode/1.18.33", "responses", "quota", 400),
        ("opencode/1.18.33", "responses", "model_not_found", 400),
        ("python-httpx/1.0", "chat/completions", "quota", 429),
    ] {
        let ground = Ground::new(OpenAi, &[&always(&format!("{fault} = {{}}"))]).await;
        let headers = [("user-agent", client)];
        let body = r#"{"model":"gpt-x","input":"x","messages":[{"role":"user","content":"x"}]}"#;
        let path = format!("/openai/v1/{path}");
        let reply = ground
            .send(hyper::Method::POST, &path, &headers, body)
            .await;
        assert_eq!(
            (reply.status.as_u16(), ground.asked()),
            (status, vec![1]),
            "{client} {fault}: {reply:?}"
        );
        // They look at the message, too.
        let asks_again = ["429", "Too Many", "exhausted"];
        let message = serde_json::from_str::<serde_json::Value>(&reply.body).unwrap();
        let message = message["error"]["message"].as_str().unwrap();
        assert!(
            status == 429 || asks_again.iter().all(|words| !message.contains(words)),
            "{message}"
        );
    }
}

/// So is one while all upstreams pause.
#[tokio::test]
async fn retrying_agent_is_stopped_while_upstreams_pause() {
    let ground = Ground::new(OpenAi, &[&always("rate_limit = { retry_after = 900 }")]).await;
    let headers = [("user-agent", "codex_exec/0.166.0 (Linux)")];
    let body = r#"{"model":"gpt-x","input":"x"}"#;
    for status in [429, 400] {
        let path = "/openai/v1/responses";
        let reply = ground.send(hyper::Method::POST, path, &headers, body).await;
        assert_eq!(reply.status.as_u16(), status, "{reply:?}");
        assert_eq!(reply.header("x-should-retry"), "false");
    }
    assert_eq!(ground.asked(), [1]);
}
