//! Retries, their timing, and sharing of upstreams that have limits or are down.

use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use unstuck_core::decision::CircuitBreakerSettings;
use unstuck_core::event::{ApiCallOutcome, FinishReason};
use unstuck_gateway::GatewaySettings;
use unstuck_gateway::protocol::Protocol::{self, Anthropic, Gemini, OpenAi};

use crate::{Ground, Reply};

const ANSWER: &str = "[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n";

async fn ask(ground: &Ground, protocol: Protocol, session: &str) -> Reply {
    let (path, body) = match protocol {
        Anthropic => (
            "/anthropic/v1/messages",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#,
        ),
        OpenAi => (
            "/openai/v1/chat/completions",
            r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#,
        ),
        Gemini => (
            "/gemini/v1beta/models/m:generateContent",
            r#"{"contents":[{"role":"user","parts":[{"text":"x"}]}]}"#,
        ),
    };
    ground.post(&format!("/s/{session}{path}"), body).await
}

/// S4-01: every transient failure is retried with the same bytes, invisibly to the client.
#[tokio::test]
async fn transient_failures_are_retried_with_the_same_bytes() {
    let statuses =
        [408, 500, 502, 503, 504, 529].map(|code| format!("status = {{ code = {code} }}"));
    let others = [
        "rate_limit = {}",
        "overloaded = {}",
        "html = {}",
        "reset = {}",
        "close = {}",
    ];
    for fault in statuses.iter().map(String::as_str).chain(others) {
        for protocol in Protocol::ALL {
            let script = format!("[[step]]\n{fault}\n{ANSWER}");
            let ground = Ground::new(protocol, &[&script]).await;
            let reply = ask(&ground, protocol, "one").await;
            let told = format!("{fault} by {}: {reply:?}", protocol.name());
            assert_eq!(reply.status.as_u16(), 200, "{told}");
            assert_eq!(reply.header("x-unstuck-attempts"), "2", "{told}");
            let requests = ground.upstreams[0].requests();
            assert_eq!(requests.len(), 2, "{told}");
            assert_eq!(requests[0].body_sha256, requests[1].body_sha256, "{told}");
        }
    }
}

/// A stated wait is respected in every form that providers use, in headers and in bodies.
#[tokio::test]
async fn stated_waits_are_respected_in_every_form() {
    let forms = [
        "seconds",
        "fractional",
        "http_date",
        "millis",
        "duration",
        "bare_seconds",
        "epoch_seconds",
        "epoch_millis",
        "rfc3339",
        "body",
        "message",
    ];
    let cases = forms
        .iter()
        .flat_map(|form| Protocol::ALL.map(|protocol| (*form, protocol)));
    let tried = cases.map(|(form, protocol)| async move {
        let script =
            format!("[[step]]\nrate_limit_as = {{ form = \"{form}\", wait = \"1s\" }}\n{ANSWER}");
        let ground = Ground::new(protocol, &[&script]).await;
        let reply = ask(&ground, protocol, "one").await;
        let told = format!("{form} by {}: {reply:?}", protocol.name());
        assert_eq!(reply.status.as_u16(), 200, "{told}");
        let requests = ground.upstreams[0].requests();
        assert_eq!(requests.len(), 2, "{told}");
        let waited = requests[1].at.since(requests[0].at);
        // Some forms have only whole seconds.
        let right = Duration::from_millis(900)..Duration::from_secs(5);
        assert!(right.contains(&waited), "{waited:?}: {told}");
    });
    join_all(tried).await;
}

/// The upstream's own statement about retrying applies.
#[tokio::test]
async fn upstream_retry_header_is_respected() {
    for (code, word, asked) in [(500, "false", 1), (529, "false", 1), (409, "true", 2)] {
        let script = format!(
            "[[step]]\nstatus = {{ code = {code}, headers = {{ x-should-retry = \"{word}\" }} }}\n{ANSWER}"
        );
        let ground = Ground::new(OpenAi, &[&script]).await;
        let reply = ask(&ground, OpenAi, "one").await;
        assert_eq!(ground.asked(), [asked], "{code} {word}: {reply:?}");
    }
}

/// All sessions respect a limit that one of them learns of, before it is hit.
#[tokio::test]
async fn sessions_slow_down_together_before_the_limit() {
    let script = format!("[limits]\nrequests_per_minute = 8\nwindow = \"2s\"\n{ANSWER}");
    let ground = Ground::new(Anthropic, &[&script]).await;
    assert_eq!(ask(&ground, Anthropic, "first").await.status.as_u16(), 200);
    let names: Vec<String> = (0..16).map(|number| format!("s{}", number % 4)).collect();
    let all = join_all(names.iter().map(|name| ask(&ground, Anthropic, name))).await;
    assert!(
        all.iter().all(|reply| reply.status.as_u16() == 200),
        "{all:?}"
    );
    let stats = ground.upstreams[0].stats();
    let over = stats.by_reply.get("over_limit").copied().unwrap_or(0);
    assert!(over <= 1, "{:?}", stats.by_reply);
}

/// An upstream that is down gets no calls from any session, and is used again after a successful probe.
#[tokio::test]
async fn upstream_that_is_down_is_paused_and_used_again() {
    let script = format!("[[step]]\nserver_error = {{}}\ntimes = 12\n{ANSWER}");
    let patient = |settings: &mut GatewaySettings| {
        settings.limits.hold = Duration::from_millis(100);
        settings.lanes.breaker = CircuitBreakerSettings {
            failures: 4,
            cool_down: Duration::from_millis(300),
            max_cool_down: Duration::from_millis(300),
            ..CircuitBreakerSettings::default()
        };
    };
    let ground = Ground::with(OpenAi, &[&script], patient).await;
    let mut rested = 0;
    for number in 0..40 {
        let reply = ask(&ground, OpenAi, &format!("s{number}")).await;
        assert_ne!(reply.status.as_u16(), 200);
        if reply.body.contains("circuit breaker open") {
            assert_eq!(reply.header("x-should-retry"), "false");
            assert!(!reply.header("retry-after").is_empty(), "{reply:?}");
            rested += 1;
        }
    }
    assert!(rested > 20, "{rested}");
    assert!(ground.asked()[0] <= 12, "{:?}", ground.asked());
    let back = async {
        while ask(&ground, OpenAi, "later").await.status.as_u16() != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), back)
        .await
        .unwrap();
}

/// A client that closes its side has gone away: its call is abandoned, and others are served.
#[tokio::test]
async fn half_closed_request_is_orphaned() {
    let script = format!("[[step]]\nhang = {{}}\n{ANSWER}");
    let ground = Ground::new(OpenAi, &[&script]).await;
    let mut stream = TcpStream::connect(ground.gateway.address()).await.unwrap();
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    let request = format!(
        "POST /openai/v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    while ground.asked()[0] == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stream.shutdown().await.unwrap();
    let mut read = Vec::new();
    let reading = stream.read_to_end(&mut read);
    let read = tokio::time::timeout(Duration::from_secs(5), reading).await;
    assert!(read.is_ok(), "the connection ends");
    assert_eq!(ask(&ground, OpenAi, "other").await.status.as_u16(), 200);
    let given_up = async {
        while ground.upstreams[0].stats().in_flight > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), given_up)
        .await
        .unwrap();
}

/// A session with many concurrent calls does not block the others.
#[tokio::test]
async fn busy_session_does_not_starve_another() {
    let script = "[[step]]\nanswer = { text = \"Done.\", delay = \"30ms\" }\ntimes = \"always\"\n";
    let one_at_a_time = |settings: &mut GatewaySettings| settings.lanes.max_in_flight = Some(1);
    let ground = Ground::with(OpenAi, &[script], one_at_a_time).await;
    let order = Mutex::new(Vec::new());
    let (place, done) = (&ground, &order);
    let ask = |session: &'static str| async move {
        assert_eq!(ask(place, OpenAi, session).await.status.as_u16(), 200);
        done.lock().unwrap().push(session);
    };
    let busy = join_all((0..20).map(|_| ask("busy")));
    let other = async {
        while ground.asked()[0] < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        ask("other").await;
    };
    tokio::join!(busy, other);
    let order = order.into_inner().unwrap();
    let place = order.iter().position(|name| *name == "other").unwrap();
    assert!(place < 8, "{place} of {order:?}");
}

/// The usage of streams is taken from their own reports, in each API.
#[tokio::test]
async fn stream_usage_is_recorded() {
    let script = "[[step]]\nanswer = { text = \"Done now.\", input_tokens = 1000, output_tokens = 100 }\ntimes = \"always\"\n";
    let talk = r#""messages":[{"role":"user","content":"x"}]"#;
    for (protocol, path, body) in [
        (
            Anthropic,
            "/anthropic/v1/messages",
            format!(r#"{{"model":"claude-sonnet-5-5","max_tokens":9,"stream":true,{talk}}}"#),
        ),
        (
            OpenAi,
            "/openai/v1/chat/completions",
            format!(
                r#"{{"model":"gpt-6.1-terra","stream":true,"stream_options":{{"include_usage":true}},{talk}}}"#
            ),
        ),
        (
            OpenAi,
            "/openai/v1/responses",
            r#"{"model":"gpt-6.1-terra","stream":true,"input":"x"}"#.to_owned(),
        ),
        (
            Gemini,
            "/gemini/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
            r#"{"contents":[{"role":"user","parts":[{"text":"x"}]}]}"#.to_owned(),
        ),
    ] {
        let ground = Ground::new(protocol, &[script]).await;
        let reply = ground.post(path, &body).await;
        assert_eq!(reply.status.as_u16(), 200, "{path}: {reply:?}");
        let record = ground.record().await;
        assert!(record.is_stream, "{path}");
        let tokens = record.tokens.unwrap();
        let sums = (tokens.input + tokens.cached, tokens.output);
        assert_eq!(sums, (1000, 100), "{path}");
    }
}

/// A session's supervisor learns the result of its newest call, and the time of the last success.
#[tokio::test]
async fn result_of_the_newest_call_is_known() {
    let steps = "[[step]]\nanswer = { text = \"Done\" }\n\n[[step]]\nanswer = { text = \"\" }\n\n[[step]]\ncut_at = { after = 4, by = \"reset\" }\ntimes = \"always\"\n";
    let ground = Ground::new(OpenAi, &[steps]).await;
    ground.chat(true).await;
    let session = ground.gateway.sessions().remove(0);
    let last = session.last_call().unwrap();
    assert_eq!(
        (last.outcome, last.is_usable()),
        (ApiCallOutcome::Answered, true)
    );
    assert_eq!(last.finish, Some(FinishReason::Stop));
    let success = session.last_success().unwrap();
    ground.chat(true).await;
    let last = session.last_call().unwrap();
    assert_eq!(
        (last.outcome, last.is_usable()),
        (ApiCallOutcome::Answered, false)
    );
    ground.chat(true).await;
    let last = session.last_call().unwrap();
    assert_eq!(
        (last.outcome, last.is_usable()),
        (ApiCallOutcome::Truncated, false)
    );
    assert!(session.last_success().unwrap() >= success);
    session.begin_attempt(false);
    assert_eq!(session.last_call(), None);
    assert!(session.last_success().is_some());
}
