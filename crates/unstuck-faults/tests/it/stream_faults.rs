//! Streams that stop, are corrupt or fall silent, at every frame of every protocol.

use std::time::Duration;

use serde_json::Value;
use unstuck_core::FailureKind;
use unstuck_faults::{
    FaultScript, FaultScriptReply, FaultScriptStep, FaultServer, FaultStreamCutMode, ResponsePace,
    StreamedApiErrorKind,
};

use crate::exchange::{ANTHROPIC, CHAT, DIALECTS, Dialect, End, GEMINI, RESPONSES, Reached};

fn serving(reply: FaultScriptReply) -> FaultServer {
    FaultServer::start(FaultScript::default().with_step(reply)).unwrap()
}

/// Returns the frames of a body, each with its end.
fn frames(reached: &Reached) -> Vec<String> {
    let end = if reached.body.contains("\r\n\r\n") {
        "\r\n\r\n"
    } else {
        "\n\n"
    };
    reached
        .body
        .split_inclusive(end)
        .map(str::to_owned)
        .collect()
}

/// Returns the frames of a complete stream, as a reference for broken ones.
async fn whole(dialect: Dialect) -> Vec<String> {
    let wait = Some(Duration::ZERO);
    let stalled = FaultScriptReply::StallAt {
        after: 0,
        wait,
        pings: None,
        cut: false,
    };
    frames(&dialect.stream(&serving(stalled)).await)
}

#[tokio::test]
async fn a_stream_can_be_cut_after_every_frame() {
    for dialect in DIALECTS {
        let all = whole(dialect).await;
        assert!(all.len() > 4, "{dialect:?}");
        let steps = (0..all.len()).map(|after| FaultScriptReply::CutAt {
            after,
            by: FaultStreamCutMode::End,
        });
        let server =
            FaultServer::start(steps.fold(FaultScript::default(), FaultScript::with_step)).unwrap();
        for after in 0..all.len() {
            let reached = dialect.stream(&server).await;
            assert_eq!((reached.status, reached.end), (200, End::Complete));
            let sent: Vec<_> = frames(&reached).iter().map(|frame| frame.len()).collect();
            let expected: Vec<_> = all[..after].iter().map(String::len).collect();
            assert_eq!(sent, expected, "{dialect:?} after {after}");
        }
    }
}

#[tokio::test]
async fn a_cut_without_the_end_of_http_is_detected_as_broken() {
    for by in [FaultStreamCutMode::Close, FaultStreamCutMode::Reset] {
        for dialect in DIALECTS {
            let reached = dialect
                .stream(&serving(FaultScriptReply::CutAt { after: 2, by }))
                .await;
            assert_eq!(reached.end, End::Broken, "{dialect:?} {by:?}");
            assert_eq!(frames(&reached).len(), 2, "{dialect:?} {by:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_can_stall_forever_with_and_without_pings() {
    for dialect in DIALECTS {
        let silent = FaultScriptReply::StallAt {
            after: 2,
            wait: None,
            pings: None,
            cut: false,
        };
        let reached = dialect.stream(&serving(silent)).await;
        assert_eq!(reached.end, End::Silent, "{dialect:?}");
        assert_eq!(frames(&reached).len(), 2, "{dialect:?}");

        let pings = Some(Duration::from_millis(20));
        let server = serving(FaultScriptReply::StallAt {
            after: 2,
            wait: None,
            pings,
            cut: false,
        });
        // The pings never end, so the client times out.
        let asked = tokio::time::timeout(Duration::from_millis(150), dialect.stream(&server));
        assert!(asked.await.is_err(), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_stream_continues_after_a_stall_and_is_complete() {
    for dialect in DIALECTS {
        let stalled = FaultScriptReply::StallAt {
            after: 3,
            wait: Some(Duration::from_millis(70)),
            pings: Some(Duration::from_millis(20)),
            cut: false,
        };
        let reached = dialect.stream(&serving(stalled)).await;
        let expected = whole(dialect).await.len();
        let found = frames(&reached);
        let pings = found
            .iter()
            .filter(|frame| frame.starts_with(": ") || frame.contains("{\"type\": \"ping\"}"))
            .count();
        assert!((1..=3).contains(&pings), "{dialect:?}: {found:?}");
        assert_eq!(found.len() - pings, expected, "{dialect:?}");
        let server = serving(FaultScriptReply::StallAt {
            after: 3,
            wait: Some(Duration::from_millis(10)),
            pings: None,
            cut: false,
        });
        assert!(dialect.ask(&server).await.json().is_object());
    }
}

#[tokio::test]
async fn a_slow_first_token_comes_after_the_opening_of_the_stream() {
    let openings = [(ANTHROPIC, 3), (RESPONSES, 4), (CHAT, 1), (GEMINI, 0)];
    for (dialect, opening) in openings {
        let slow = FaultScriptReply::SlowFirstToken {
            wait: Duration::from_secs(60),
            pings: None,
        };
        let reached = dialect.stream(&serving(slow)).await;
        assert_eq!((reached.status, reached.end), (200, End::Silent));
        let opened = frames(&reached);
        assert_eq!(opened.len(), opening, "{dialect:?}: {opened:?}");
        assert!(!reached.body.contains("This answer"), "{dialect:?}");
    }
}

#[tokio::test]
async fn an_error_can_follow_any_frame_and_is_diagnosed() {
    let errors = [
        (
            StreamedApiErrorKind::Overloaded,
            FailureKind::ServerOverloaded,
        ),
        (StreamedApiErrorKind::ServerError, FailureKind::ServerError),
        (StreamedApiErrorKind::RateLimit, FailureKind::RateLimit),
        (
            StreamedApiErrorKind::ContextLimit,
            FailureKind::ContextLimit,
        ),
    ];
    for (error, kind) in errors {
        for dialect in DIALECTS {
            for after in [0, 4] {
                let server = serving(FaultScriptReply::ErrorAt { after, error });
                let reached = dialect.stream(&server).await;
                assert_eq!((reached.status, reached.end), (200, End::Complete));
                assert_eq!(reached.events().len(), after + 1);
                let found = reached.diagnosis(dialect.provider).kind;
                assert_eq!(found, kind, "{dialect:?} {reached:?}");
            }
            let plain = dialect
                .ask(&serving(FaultScriptReply::ErrorAt { after: 4, error }))
                .await;
            assert_eq!(plain.diagnosis(dialect.provider).kind, kind);
        }
    }
}

#[tokio::test]
async fn only_one_frame_is_invalid_json() {
    for dialect in DIALECTS {
        let expected = whole(dialect).await.len();
        let reached = dialect
            .stream(&serving(FaultScriptReply::BadChunk {
                after: 3,
                extra: false,
            }))
            .await;
        assert_eq!(reached.end, End::Complete);
        let data = reached
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let is_json = |data: &str| data == "[DONE]" || serde_json::from_str::<Value>(data).is_ok();
        let good: Vec<_> = data.map(is_json).collect();
        assert_eq!(good.len(), expected, "{dialect:?}");
        let bad: Vec<_> = (0..good.len()).filter(|place| !good[*place]).collect();
        assert_eq!(bad, [3], "{dialect:?}: {}", reached.body);
    }
}

#[tokio::test]
async fn a_missing_end_marker_leaves_the_rest_complete() {
    let ends = [
        (ANTHROPIC, "message_stop", "stop_reason\":\"end_turn"),
        (RESPONSES, "response.completed", "response.completed"),
        (CHAT, "[DONE]", "finish_reason\":\"stop"),
        (GEMINI, "finishReason", "finishReason"),
    ];
    for (dialect, marker, reason) in ends {
        let reached = dialect
            .stream(&serving(FaultScriptReply::MissingEnd { reason_too: false }))
            .await;
        assert_eq!(reached.end, End::Complete);
        assert!(!reached.body.contains(marker), "{dialect:?}");
        assert!(reached.body.contains("ends."), "{dialect:?}");
        let reached = dialect
            .stream(&serving(FaultScriptReply::MissingEnd { reason_too: true }))
            .await;
        assert!(!reached.body.contains(reason), "{dialect:?}");
        assert!(reached.body.contains("ends."), "{dialect:?}");
    }
}

#[tokio::test]
async fn invalid_json_has_the_length_of_the_valid_answer() {
    for dialect in DIALECTS {
        let reached = dialect.ask(&serving(FaultScriptReply::InvalidJson)).await;
        assert_eq!((reached.status, reached.end), (200, End::Complete));
        assert!(serde_json::from_str::<Value>(&reached.body).is_err());
        assert!(reached.body.ends_with('}'), "{}", reached.body);
    }
}

#[tokio::test]
async fn a_stream_has_the_requested_number_of_chunks() {
    let pace = ResponsePace {
        chunks: Some(100),
        chunk_bytes: Some(40),
        ..ResponsePace::default()
    };
    let script = FaultScript::default()
        .with_step(FaultScriptStep::from(FaultScriptReply::answer("Done.")).with_pace(pace));
    let server = FaultServer::start(script).unwrap();
    let places = [
        (ANTHROPIC, "/delta/text"),
        (RESPONSES, "/delta"),
        (CHAT, "/choices/0/delta/content"),
        (GEMINI, "/candidates/0/content/parts/0/text"),
    ];
    for (dialect, place) in places {
        let events = dialect.stream(&server).await.events();
        let texts = events
            .iter()
            .filter_map(|event| event.pointer(place)?.as_str());
        let lengths: Vec<_> = texts.map(str::len).filter(|length| *length > 0).collect();
        assert_eq!(lengths, [40; 100], "{dialect:?}");
    }
}
