//! Key limits, an exceeded capacity, and slow answers.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use unstuck_core::FailureKind;
use unstuck_faults::{
    FaultScript, FaultScriptReply, FaultServer, FaultServerCapacityPhase, FaultServerKeyLimits,
    LatencyDistribution, ResponsePace, ServerCapacity,
};

use crate::exchange::{ANTHROPIC, CHAT, DIALECTS, Dialect, GEMINI, post_with};

fn start(script: FaultScript) -> FaultServer {
    FaultServer::start(script).unwrap()
}

/// Starts a server with two requests per window for each key.
fn two_per(window: Duration) -> FaultServer {
    start(
        FaultScript::answering("Done").with_limits(FaultServerKeyLimits {
            requests_per_minute: Some(2),
            window,
            ..FaultServerKeyLimits::default()
        }),
    )
}

/// Returns the statuses of simultaneous requests, in the order of their ends.
async fn crowd(server: &FaultServer, count: usize) -> Vec<u16> {
    let mut asking = JoinSet::new();
    let (path, body) = ANTHROPIC.question(false);
    let address = server.address();
    for _ in 0..count {
        let body = body.clone();
        asking.spawn(async move {
            let body = body.to_string();
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: faults\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
            answer[9..12].parse::<u16>().unwrap()
        });
    }
    asking.join_all().await
}

/// Exceeds the limit, and retries after the stated wait.
async fn exceed(dialect: Dialect) {
    let server = two_per(Duration::from_secs(1));
    assert_eq!(dialect.ask(&server).await.status, 200);
    assert_eq!(dialect.ask(&server).await.status, 200);
    let limited = dialect.ask(&server).await;
    assert_eq!(limited.status, 429, "{dialect:?}");
    let diagnosis = limited.diagnosis(dialect.provider);
    assert_eq!(diagnosis.kind, FailureKind::RateLimit, "{limited:?}");
    let wait = diagnosis.retry_after.unwrap();
    assert!(wait <= Duration::from_secs(1), "{limited:?}");
    tokio::time::sleep(wait).await;
    assert_eq!(dialect.ask(&server).await.status, 200, "{dialect:?}");
    assert_eq!(server.stats().by_reply["over_limit"], 1);
    assert_eq!(server.requests()[2].reply, Some("over_limit"));
}

#[tokio::test]
async fn an_exceeded_limit_states_a_wait_after_which_a_retry_succeeds() {
    let [anthropic, responses, chat, gemini] = DIALECTS.map(exceed);
    tokio::join!(anthropic, responses, chat, gemini);
}

#[tokio::test]
async fn successful_answers_have_the_rate_limit_headers_of_each_provider() {
    let limits = FaultServerKeyLimits {
        requests_per_minute: Some(10),
        tokens_per_minute: Some(1_000),
        ..FaultServerKeyLimits::default()
    };
    let server = start(FaultScript::answering("Done").with_limits(limits));
    let claude = ANTHROPIC.ask(&server).await;
    assert_eq!(
        claude.header("anthropic-ratelimit-requests-limit"),
        Some("10")
    );
    assert_eq!(
        claude.header("anthropic-ratelimit-requests-remaining"),
        Some("9")
    );
    let reset = claude.header("anthropic-ratelimit-tokens-reset").unwrap();
    assert!(reset.parse::<unstuck_core::Timestamp>().is_ok(), "{reset}");
    let openai = CHAT.stream(&server).await;
    assert_eq!(openai.header("x-ratelimit-remaining-requests"), Some("8"));
    let remaining: u64 = openai
        .header("x-ratelimit-remaining-tokens")
        .unwrap()
        .parse()
        .unwrap();
    assert!((900..1_000).contains(&remaining), "{remaining}");
    assert!(
        openai
            .header("x-ratelimit-reset-requests")
            .unwrap()
            .ends_with('s')
    );
    let gemini = GEMINI.ask(&server).await;
    assert!(
        gemini
            .headers
            .iter()
            .all(|(name, _)| !name.contains("ratelimit"))
    );
}

#[tokio::test]
async fn each_key_has_separate_limits() {
    let server = two_per(Duration::from_secs(60));
    let (path, body) = ANTHROPIC.question(false);
    let statuses = async |key| {
        let mut statuses = Vec::new();
        for _ in 0..3 {
            let reached = post_with(&server, (path, &body), ("x-api-key", key)).await;
            statuses.push(reached.status);
        }
        statuses
    };
    assert_eq!(statuses("one").await, [200, 200, 429]);
    assert_eq!(statuses("two").await, [200, 200, 429]);
}

#[tokio::test]
async fn a_request_larger_than_the_whole_limit_states_no_wait() {
    let limits = FaultServerKeyLimits {
        tokens_per_minute: Some(2),
        ..FaultServerKeyLimits::default()
    };
    let server = start(FaultScript::answering("Done").with_limits(limits));
    let limited = CHAT.ask(&server).await;
    assert_eq!(limited.status, 429);
    assert_eq!(
        limited.diagnosis("openai").kind,
        FailureKind::ContextLimit,
        "{limited:?}"
    );
}

#[tokio::test]
async fn requests_beyond_the_slots_and_the_queue_are_overloaded() {
    let server = start(
        FaultScript::answering("Done").with_capacity(ServerCapacity {
            concurrent: Some(2),
            queue: 3,
            service: LatencyDistribution::Fixed(Duration::from_millis(150)),
            ..ServerCapacity::default()
        }),
    );
    let mut statuses = crowd(&server, 10).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 529, 529, 529, 529, 529]);
    let stats = server.stats();
    assert_eq!(stats.by_reply["over_capacity"], 5);
    assert_eq!(stats.by_reply["answer"], 5);
    assert_eq!((stats.in_flight, stats.requests), (0, 10));
    assert_eq!(crowd(&server, 2).await, [200, 200]);
}

#[tokio::test]
async fn throughput_drops_in_a_brownout_and_recovers_afterwards() {
    let server = start(
        FaultScript::answering("Done")
            .with_capacity(ServerCapacity {
                concurrent: Some(10),
                queue: 0,
                service: LatencyDistribution::Fixed(Duration::from_millis(500)),
                ..ServerCapacity::default()
            })
            .with_phase(FaultServerCapacityPhase {
                from: Duration::ZERO,
                lasts: Duration::from_secs(2),
                share: 0.3,
                failures: None,
            }),
    );
    let good = |statuses: &[u16]| statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(good(&crowd(&server, 10).await), 3);
    let recovered = async { while good(&crowd(&server, 10).await) < 10 {} };
    let in_time = tokio::time::timeout(Duration::from_secs(20), recovered).await;
    assert!(in_time.is_ok(), "the brownout does not end");
}

#[tokio::test]
async fn a_stream_holds_its_slot_until_it_ends() {
    let pace = ResponsePace {
        between: LatencyDistribution::Fixed(Duration::from_millis(60)),
        ..ResponsePace::default()
    };
    let server = start(
        FaultScript::answering("one two three four")
            .with_pace(pace)
            .with_capacity(ServerCapacity {
                concurrent: Some(1),
                queue: 0,
                ..ServerCapacity::default()
            }),
    );
    let (stream, refused) = tokio::join!(ANTHROPIC.stream(&server), async {
        while server.stats().in_flight == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        ANTHROPIC.ask(&server).await
    });
    assert_eq!((stream.status, refused.status), (200, 529));
    assert_eq!(ANTHROPIC.ask(&server).await.status, 200);
}

#[tokio::test]
async fn the_first_byte_and_each_further_frame_are_delayed() {
    let pace = |first_byte, between| ResponsePace {
        first_byte: LatencyDistribution::Fixed(Duration::from_millis(first_byte)),
        between: LatencyDistribution::Fixed(Duration::from_millis(between)),
        chunks: Some(4),
        chunk_bytes: Some(4),
    };
    for (first_byte, between, least) in [(60, 0, 60), (0, 10, 40)] {
        let script = FaultScript::answering("x").with_pace(pace(first_byte, between));
        let server = start(script);
        let begun = Instant::now();
        let reached = CHAT.stream(&server).await;
        assert!(reached.body.ends_with("[DONE]\n\n"));
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(least), "{took:?}");
    }
    let refusing = FaultScript::default()
        .with_step(FaultScriptReply::Overloaded)
        .with_pace(pace(60_000, 0));
    assert_eq!(CHAT.ask(&start(refusing)).await.status, 503);
}
