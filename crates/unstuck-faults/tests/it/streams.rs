//! Streams: well-formed when intended, and really broken otherwise.

use std::time::Duration;

use serde_json::Value;
use unstuck_faults::{FaultScript, FaultScriptReply, FaultServer};

use crate::exchange::{ANTHROPIC, CHAT, DIALECTS, End, GEMINI, RESPONSES};

const ANSWER: &str = "The tests pass again:\n  all twelve of them, in ünder a second.";

fn serving(reply: FaultScriptReply) -> FaultServer {
    FaultServer::start(FaultScript::default().with_step(reply)).unwrap()
}

/// Returns all texts at a path in the events, joined.
fn text(events: &[Value], place: &str) -> String {
    let texts = events
        .iter()
        .filter_map(|event| event.pointer(place)?.as_str());
    texts.collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    let mut names: Vec<_> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    names.dedup();
    names
}

#[tokio::test]
async fn an_anthropic_stream_has_the_whole_answer_and_its_usage() {
    let reached = ANTHROPIC
        .stream(&serving(FaultScriptReply::answer(ANSWER)))
        .await;
    let events = reached.events();
    assert_eq!(text(&events, "/delta/text"), ANSWER);
    let expected = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names(&events), expected);
    assert!(events[0]["message"]["usage"]["input_tokens"].as_u64() > Some(0));
    assert_eq!(text(&events, "/delta/stop_reason"), "end_turn");
    assert_eq!(
        reached.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
}

#[tokio::test]
async fn a_responses_stream_ends_with_the_completed_response() {
    let reached = RESPONSES
        .stream(&serving(FaultScriptReply::answer(ANSWER)))
        .await;
    let events = reached.events();
    assert_eq!(text(&events, "/delta"), ANSWER);
    let numbers = events.iter().map(|event| event["sequence_number"].as_u64());
    assert!(numbers.eq((0..).map(Some).take(events.len())));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["status"], "completed");
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], ANSWER);
    assert!(last["response"]["usage"]["total_tokens"].as_u64() > Some(0));
}

#[tokio::test]
async fn a_chat_stream_ends_with_its_usage_and_done() {
    let reached = CHAT
        .stream(&serving(FaultScriptReply::answer(ANSWER)))
        .await;
    let events = reached.events();
    assert_eq!(text(&events, "/choices/0/delta/content"), ANSWER);
    assert_eq!(text(&events, "/choices/0/finish_reason"), "stop");
    let last = events.last().unwrap();
    assert!(last["usage"]["total_tokens"].as_u64() > Some(0));
    assert!(reached.body.ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn a_gemini_stream_ends_with_its_finish_reason() {
    let events = GEMINI
        .stream(&serving(FaultScriptReply::answer(ANSWER)))
        .await
        .events();
    assert_eq!(text(&events, "/candidates/0/content/parts/0/text"), ANSWER);
    assert_eq!(text(&events, "/candidates/0/finishReason"), "STOP");
}

#[tokio::test]
async fn a_refusal_in_a_stream_is_stated_at_its_end() {
    let server = serving(FaultScriptReply::Refusal);
    let ends = [
        (ANTHROPIC, "/delta/stop_reason", "refusal"),
        (CHAT, "/choices/0/finish_reason", "content_filter"),
        (RESPONSES, "/response/output/0/content/0/type", "refusal"),
        (GEMINI, "/promptFeedback/blockReason", "SAFETY"),
    ];
    for (dialect, place, expected) in ends {
        assert_eq!(
            text(&dialect.stream(&server).await.events(), place),
            expected
        );
    }
}

#[tokio::test]
async fn tokens_are_charged_as_scripted() {
    let script = r#"
        [[step]]
        answer = { text = "Done", input_tokens = 1200, output_tokens = 34 }
    "#;
    let server = FaultServer::start(script.parse().unwrap()).unwrap();
    let usage = &ANTHROPIC.ask(&server).await.json()["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"]),
        (&1200.into(), &34.into())
    );
    let usage = &GEMINI.ask(&server).await.json()["usageMetadata"];
    assert_eq!(usage["totalTokenCount"], 1234);
}

#[tokio::test]
async fn a_cut_answer_breaks_off_in_the_middle() {
    let server = serving(FaultScriptReply::Cut);
    for dialect in DIALECTS {
        let stream = dialect.stream(&server).await;
        assert_eq!(
            (stream.status, stream.end),
            (200, End::Broken),
            "{dialect:?}"
        );
        assert!(!stream.events().is_empty(), "{dialect:?}");
        let whole = dialect.ask(&server).await;
        assert_eq!((whole.status, whole.end), (200, End::Broken), "{dialect:?}");
        assert!(whole.body.starts_with('{'));
    }
}

#[tokio::test]
async fn a_stalled_answer_has_only_headers() {
    let stalled = ANTHROPIC.stream(&serving(FaultScriptReply::Stall)).await;
    assert_eq!((stalled.status, stalled.end), (200, End::Silent));
    assert_eq!(stalled.body, "");
}

#[tokio::test]
async fn a_hanging_request_gets_no_headers() {
    let server = serving(FaultScriptReply::Hang);
    let asked = tokio::time::timeout(Duration::from_millis(300), ANTHROPIC.ask(&server));
    assert!(asked.await.is_err());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_malformed_answer_is_successful_http_with_broken_json() {
    let server = serving(FaultScriptReply::Malformed);
    for dialect in DIALECTS {
        let whole = dialect.ask(&server).await;
        assert_eq!((whole.status, whole.end), (200, End::Complete));
        assert!(serde_json::from_str::<Value>(&whole.body).is_err());
        let stream = dialect.stream(&server).await;
        let data = stream
            .body
            .lines()
            .find_map(|line| line.strip_prefix("data: "));
        assert!(
            serde_json::from_str::<Value>(data.unwrap()).is_err(),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_can_be_delayed() {
    let script = r#"
        [[step]]
        answer = { text = "Done", delay = "400ms" }
    "#;
    let server = FaultServer::start(script.parse().unwrap()).unwrap();
    let mut asked = Box::pin(ANTHROPIC.ask(&server));
    let early = tokio::time::timeout(Duration::from_millis(100), &mut asked).await;
    assert!(early.is_err());
    assert_eq!(asked.await.status, 200);
}
