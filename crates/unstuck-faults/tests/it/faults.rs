//! Every fault is diagnosed correctly in every protocol.

use std::time::Duration;

use serde_json::json;
use unstuck_core::{Diagnosis, FailureKind};
use unstuck_faults::{FaultScript, FaultScriptReply, FaultServer};

use crate::exchange::{ANTHROPIC, CHAT, DIALECTS, Dialect, GEMINI, RESPONSES, Reached, post};

async fn reached(dialect: Dialect, reply: FaultScriptReply) -> Reached {
    let server = FaultServer::start(FaultScript::default().with_step(reply)).unwrap();
    dialect.ask(&server).await
}

async fn diagnosis(dialect: Dialect, reply: FaultScriptReply) -> Diagnosis {
    reached(dialect, reply).await.diagnosis(dialect.provider)
}

fn serving(reply: FaultScriptReply) -> FaultServer {
    FaultServer::start(FaultScript::default().with_step(reply)).unwrap()
}

/// Returns the wrong diagnoses of a fault, in both forms of all protocols.
async fn misjudged(reply: &FaultScriptReply, expected: FailureKind) -> Vec<String> {
    let mut wrong = Vec::new();
    for dialect in DIALECTS {
        let script = FaultScript::default().with_step(reply.clone());
        let server = FaultServer::start(script).unwrap();
        let answers = [dialect.ask(&server).await, dialect.stream(&server).await];
        for answer in answers {
            let found = answer.diagnosis(dialect.provider).kind;
            if found != expected {
                wrong.push(format!("{reply:?} is {found}, not {expected}: {answer:?}"));
            }
        }
    }
    wrong
}

/// S4-33: the harness answers like the real APIs, in the format that unstuck has to understand.
#[tokio::test]
async fn every_fault_is_diagnosed_as_its_kind_in_every_protocol() {
    let expected = [
        (
            FaultScriptReply::answer("The tests pass."),
            FailureKind::None,
        ),
        (
            FaultScriptReply::RateLimit {
                retry_after: Some(7),
            },
            FailureKind::RateLimit,
        ),
        (
            FaultScriptReply::RateLimit { retry_after: None },
            FailureKind::RateLimit,
        ),
        (
            FaultScriptReply::usage_limit(Duration::from_secs(3600)),
            FailureKind::RateLimitTimed,
        ),
        (FaultScriptReply::Quota, FailureKind::QuotaExhausted),
        (FaultScriptReply::Overloaded, FailureKind::ServerOverloaded),
        (FaultScriptReply::StreamError, FailureKind::ServerOverloaded),
        (FaultScriptReply::ServerError, FailureKind::ServerError),
        (FaultScriptReply::Auth, FailureKind::AuthRequired),
        (FaultScriptReply::ContextLimit, FailureKind::ContextLimit),
        (FaultScriptReply::ModelNotFound, FailureKind::ModelNotFound),
        (
            FaultScriptReply::Html { status: None },
            FailureKind::ServerError,
        ),
        (FaultScriptReply::AuthExpired, FailureKind::AuthExpired),
        (FaultScriptReply::ContentFilter, FailureKind::ContentFilter),
        (FaultScriptReply::status(500), FailureKind::ServerError),
        (FaultScriptReply::status(502), FailureKind::ServerError),
        (FaultScriptReply::status(504), FailureKind::Timeout),
        (FaultScriptReply::status(429), FailureKind::RateLimit),
        (FaultScriptReply::status(401), FailureKind::AuthRequired),
    ];
    let mut wrong = Vec::new();
    for (reply, expected) in expected {
        wrong.extend(misjudged(&reply, expected).await);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn model_refusals_are_not_http_errors() {
    for dialect in DIALECTS {
        let reached = reached(dialect, FaultScriptReply::Refusal).await;
        assert_eq!(reached.status, 200);
        let diagnosis = reached.diagnosis(dialect.provider);
        assert_eq!(diagnosis.kind, FailureKind::ContentFilter, "{reached:?}");
    }
}

#[tokio::test]
async fn an_empty_answer_is_well_formed_without_text() {
    let anthropic = reached(ANTHROPIC, FaultScriptReply::Empty).await.json();
    assert_eq!(anthropic["content"], json!([]));
    assert_eq!(anthropic["stop_reason"], "end_turn");
    let responses = reached(RESPONSES, FaultScriptReply::Empty).await.json();
    assert_eq!(responses["output"], json!([]));
    let chat = reached(CHAT, FaultScriptReply::Empty).await.json();
    assert_eq!(chat["choices"][0]["message"]["content"], "");
    let gemini = reached(GEMINI, FaultScriptReply::Empty).await.json();
    assert_eq!(gemini["candidates"][0]["content"]["parts"], json!([]));
    for dialect in [ANTHROPIC, RESPONSES] {
        assert_eq!(
            diagnosis(dialect, FaultScriptReply::Empty).await.kind,
            FailureKind::EmptyOutput
        );
    }
}

#[tokio::test]
async fn the_stated_wait_is_found_in_every_protocol() {
    for dialect in DIALECTS {
        let limited = FaultScriptReply::RateLimit {
            retry_after: Some(7),
        };
        let wait = diagnosis(dialect, limited).await.retry_after;
        assert_eq!(wait, Some(Duration::from_secs(7)), "{dialect:?}");
    }
}

#[tokio::test]
async fn the_stated_reset_is_found_in_every_protocol() {
    for dialect in DIALECTS {
        let limited = FaultScriptReply::usage_limit(Duration::from_secs(3600));
        let wait = diagnosis(dialect, limited).await.retry_after.unwrap();
        let expected = Duration::from_secs(3500)..=Duration::from_secs(3601);
        assert!(expected.contains(&wait), "{dialect:?}: {wait:?}");
    }
}

#[tokio::test]
async fn errors_have_the_status_and_format_of_their_provider() {
    let overloaded = reached(ANTHROPIC, FaultScriptReply::Overloaded).await;
    assert_eq!(overloaded.status, 529);
    assert_eq!(overloaded.json()["type"], "error");
    assert_eq!(overloaded.json()["error"]["type"], "overloaded_error");
    assert_eq!(overloaded.header("request-id"), Some("req_00000001"));

    let overloaded = reached(CHAT, FaultScriptReply::Overloaded).await;
    assert_eq!(overloaded.status, 503);
    assert_eq!(overloaded.json()["error"]["code"], "server_is_overloaded");

    let unknown_key = reached(GEMINI, FaultScriptReply::Auth).await;
    assert_eq!(unknown_key.status, 400);
    let details = &unknown_key.json()["error"]["details"];
    assert_eq!(details[0]["reason"], "API_KEY_INVALID");

    let no_model = reached(RESPONSES, FaultScriptReply::ModelNotFound).await;
    assert_eq!(no_model.status, 404);
    let message = no_model.json()["error"]["message"].to_string();
    assert!(message.contains("some-model"), "{message}");
}

#[tokio::test]
async fn a_usage_limit_states_its_reset_in_the_format_of_each_subscription() {
    let script = r#"
        [[step]]
        usage_limit = { resets_at = "2040-01-01T00:00:00Z" }
    "#;
    let server = FaultServer::start(script.parse().unwrap()).unwrap();
    let claude = ANTHROPIC.ask(&server).await;
    let header = |name: &str| claude.header(&format!("anthropic-ratelimit-unified-{name}"));
    assert_eq!(header("status"), Some("rejected"));
    assert_eq!(header("reset"), Some("2208988800"));
    assert_eq!(header("representative-claim"), Some("five_hour"));

    let codex = RESPONSES.ask(&server).await;
    assert_eq!(codex.json()["error"]["type"], "usage_limit_reached");
    assert_eq!(codex.json()["error"]["resets_at"], 2_208_988_800_u64);
}

#[tokio::test]
async fn a_truncated_answer_states_its_stop_reason_in_both_forms() {
    let ends = [
        (
            ANTHROPIC,
            "/stop_reason",
            "/delta/stop_reason",
            "max_tokens",
        ),
        (
            CHAT,
            "/choices/0/finish_reason",
            "/choices/0/finish_reason",
            "length",
        ),
        (
            RESPONSES,
            "/incomplete_details/reason",
            "/response/incomplete_details/reason",
            "max_output_tokens",
        ),
        (
            GEMINI,
            "/candidates/0/finishReason",
            "/candidates/0/finishReason",
            "MAX_TOKENS",
        ),
    ];
    let server = serving(FaultScriptReply::MaxTokens { text: None });
    for (dialect, whole, stream, expected) in ends {
        let answer = dialect.ask(&server).await.json();
        assert_eq!(answer.pointer(whole).unwrap(), expected, "{dialect:?}");
        let events = dialect.stream(&server).await.events();
        let found = events
            .iter()
            .find_map(|event| event.pointer(stream)?.as_str());
        assert_eq!(found, Some(expected), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_tool_call_can_be_repeated_forever() {
    let script = r#"
        [[step]]
        tool_call = { name = "read_file", input = { path = "a.rs" } }
        times = "always"
    "#;
    let server = FaultServer::start(script.parse().unwrap()).unwrap();
    for _ in 0..3 {
        let answer = ANTHROPIC.ask(&server).await.json();
        let call = &answer["content"][0];
        assert_eq!(call["name"], "read_file");
        assert_eq!(call["input"], json!({"path": "a.rs"}));
        assert_eq!(answer["stop_reason"], "tool_use");
        let answer = CHAT.ask(&server).await.json();
        let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
        assert_eq!(call["arguments"], "{\"path\":\"a.rs\"}");
        let answer = RESPONSES.ask(&server).await.json();
        assert_eq!(answer["output"][0]["type"], "function_call");
        let answer = GEMINI.ask(&server).await.json();
        let part = &answer["candidates"][0]["content"]["parts"][0];
        assert_eq!(part["functionCall"]["args"], json!({"path": "a.rs"}));
    }
}

#[tokio::test]
async fn a_rejected_prefill_succeeds_without_the_prefill() {
    let script = r#"
        [[step]]
        when = { model = "opus", prefill = true }
        prefill_rejected = {}
        times = "always"

        [[step]]
        answer = {}
        times = "always"
    "#;
    let server = FaultServer::start(script.parse().unwrap()).unwrap();
    let ask = async |model: &str, last: &str| {
        let body = json!({"model": model, "messages": [
            {"role": "user", "content": "Give me JSON"}, {"role": last, "content": "{"},
        ]});
        post(&server, "/v1/messages", &body).await
    };
    let rejected = ask("claude-opus-5", "assistant").await;
    assert_eq!(rejected.status, 400);
    assert!(rejected.body.contains("prefill"), "{rejected:?}");
    assert_eq!(ask("claude-opus-5", "user").await.status, 200);
    assert_eq!(ask("claude-sonnet-5", "assistant").await.status, 200);
}

#[tokio::test]
async fn a_status_has_the_scripted_message_and_wait() {
    for dialect in DIALECTS {
        let busy = FaultScriptReply::Status {
            code: 503,
            retry_after: Some(4),
            message: Some("back at noon".to_owned()),
            headers: [("x-should-retry".to_owned(), "false".to_owned())].into(),
        };
        let reached = reached(dialect, busy).await;
        assert_eq!(reached.status, 503);
        assert_eq!(reached.header("retry-after"), Some("4"), "{dialect:?}");
        assert_eq!(reached.header("x-should-retry"), Some("false"));
        assert_eq!(reached.json()["error"]["message"], "back at noon");
    }
}

#[tokio::test]
async fn a_proxy_page_is_html_with_the_scripted_status() {
    for (status, expected) in [(None, 502), (Some(200), 200), (Some(7), 502)] {
        let page = reached(ANTHROPIC, FaultScriptReply::Html { status }).await;
        assert_eq!(page.status, expected);
        assert_eq!(page.header("content-type"), Some("text/html"));
        assert!(page.body.starts_with("<html>"));
    }
}
