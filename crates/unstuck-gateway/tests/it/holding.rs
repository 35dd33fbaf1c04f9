//! Calls held while their upstream is down, and the errors of clients that cannot be held long enough.

use std::time::Duration;

use futures_util::future::join_all;
use hyper::Method;
use unstuck_core::agent::ClientRetryBehavior;
use unstuck_core::decision::Jitter;
use unstuck_core::event::ApiCallOutcome;
use unstuck_core::{Event, RetryPolicy};
use unstuck_gateway::GatewaySettings;
use unstuck_gateway::protocol::Protocol::{Anthropic, Gemini, OpenAi};

use crate::streams::APIS;
use crate::{Ground, Reply};

const GOOD: &str = "[[step]]\nanswer = { text = \"Done\" }\ntimes = \"always\"\n";
const GEMINI: &str = "/gemini/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
const GEMINI_BODY: &str = r#"{"contents":[{"role":"user","parts":[{"text":"Fix"}]}]}"#;

fn down_for(time: &str) -> String {
    format!("[[step]]\nstatus = {{ code = 503 }}\ntimes = \"{time}\"\n\n{GOOD}")
}

/// Sets the default policy, a hundred times as fast.
fn patient(settings: &mut GatewaySettings) {
    settings.policy = RetryPolicy {
        backoff_base: 0.005,
        max_backoff: 0.6,
        give_up_after: Some(Duration::from_secs(18)),
        jitter: Jitter::Equal,
        ..RetryPolicy::default()
    };
    settings.client_retries = ClientRetryBehavior {
        waits: [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
            .map(|wait| wait / 100.0)
            .into(),
        ..ClientRetryBehavior::default()
    };
    settings.probe_every = Duration::from_millis(600);
}

/// A stream is held through an outage that would exhaust any number of retries, with keep-alive bytes meanwhile.
#[tokio::test]
async fn stream_is_held_through_an_outage() {
    for api in &APIS[..3] {
        let set = |settings: &mut GatewaySettings| {
            patient(settings);
            settings.limits.keep_alive = Duration::from_millis(100);
            settings.limits.hold = Duration::from_millis(200);
        };
        let ground = Ground::with(api.protocol, &[&down_for("1500ms")], set).await;
        let reply = ground.post(api.path, api.body).await;
        assert_eq!(reply.status.as_u16(), 200, "{}: {reply:?}", api.name);
        assert!(
            reply.body.contains(api.end) && !reply.body.contains(api.error),
            "{}: {}",
            api.name,
            reply.body
        );
        assert_eq!(ground.record().await.outcome, ApiCallOutcome::Recovered);
        // Eight attempts of the client's own schedule, one more, and two or three probes.
        assert!(
            ground.asked()[0] <= 13,
            "{}: {:?}",
            api.name,
            ground.asked()
        );
    }
}

/// Once their clients would have given up, all waiting calls share one probe at a time.
#[tokio::test]
async fn waiting_calls_share_one_probe() {
    let ground = Ground::with(OpenAi, &[&down_for("4s")], patient).await;
    let bodies: Vec<_> = (0..10)
        .map(|number| APIS[1].body.replace("Fix", &format!("Fix {number}")))
        .collect();
    let asked = bodies.iter().enumerate().map(|(number, body)| {
        let path = format!("/s/agent-{number}{}", APIS[1].path);
        let ground = &ground;
        async move { ground.post(&path, body).await }
    });
    let replies = join_all(asked).await;
    for reply in &replies {
        assert!(reply.body.contains("[DONE]"), "{reply:?}");
    }
    let requests = ground.upstreams[0].requests();
    let start = requests[0].at;
    let is_late = |at: unstuck_core::Timestamp| {
        let after = at.since(start);
        after > Duration::from_millis(1500) && after < Duration::from_secs(4)
    };
    let probes = requests.iter().filter(|one| is_late(one.at)).count();
    assert!(probes <= 6, "{probes} probes of ten calls in 2.5 s");
}

/// Sends requests of several sessions at the same time.
async fn post_all(ground: &Ground, sessions: usize) -> Vec<Reply> {
    let asked = (0..sessions).map(|number| async move {
        let path = format!("/s/agent-{number}{}", APIS[1].path);
        ground.post(&path, APIS[1].body).await
    });
    let all = tokio::time::timeout(Duration::from_secs(60), join_all(asked));
    all.await
        .expect("one probe got through: nobody waits for the next")
}

/// A probe that gets through a rate limit releases all other calls, long before the next probe would be due.
#[tokio::test]
async fn one_probe_through_a_rate_limit_releases_all_waiting_calls() {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        // One attempt each, and one ahead of the client.
        settings.client_retries.waits = Vec::new();
        settings.probe_every = Duration::from_secs(3600);
    };
    let limited = format!("[[step]]\nstatus = {{ code = 429 }}\ntimes = 12\n\n{GOOD}");
    let ground = Ground::with(OpenAi, &[&limited], set).await;
    for reply in post_all(&ground, 6).await {
        assert!(reply.body.contains("[DONE]"), "{reply:?}");
    }
}

/// Starts four sessions, each of whose streams has broken off twice: their next attempts share a probe.
async fn with_broken_streams(cuts: usize, probe_every: Duration) -> Ground {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.client_retries.waits = Vec::new();
        settings.probe_every = probe_every;
    };
    let cut = format!("[[step]]\ncut_at = {{ after = 2 }}\ntimes = {cuts}\n\n{GOOD}");
    let ground = Ground::with(OpenAi, &[&cut], set).await;
    for _ in 0..2 {
        post_all(&ground, 4).await;
    }
    ground
}

/// A whole response of one session releases all others whose streams broke off.
#[tokio::test]
async fn one_whole_response_ends_the_wait_for_broken_streams() {
    let ground = with_broken_streams(8, Duration::from_secs(3600)).await;
    for reply in post_all(&ground, 4).await {
        assert!(reply.body.contains("[DONE]"), "{reply:?}");
    }
}

/// A probe whose stream begins and breaks off again releases nobody.
#[tokio::test]
async fn a_stream_that_breaks_off_again_releases_no_other_call() {
    let ground = with_broken_streams(9, Duration::from_secs(2)).await;
    let replies = post_all(&ground, 4).await;
    let whole = replies.iter().filter(|one| one.body.contains("[DONE]"));
    assert_eq!(whole.count(), 3, "{replies:?}");
    let requests = ground.upstreams[0].requests();
    let pause = requests[9].at.since(requests[8].at);
    assert!(pause > Duration::from_millis(1500), "{pause:?}");
}

/// While the client would retry by itself, at most one attempt more than its own is made on its behalf.
#[tokio::test]
async fn attempts_follow_the_clients_own_schedule() {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.client_retries.waits = vec![0.4, 0.8, 1.2];
        settings.policy.give_up_after = Some(Duration::from_secs(2));
    };
    let ground = Ground::with(OpenAi, &[&down_for("always")], set).await;
    ground.post(APIS[1].path, APIS[1].body).await;
    let requests = ground.upstreams[0].requests();
    let start = requests[0].at;
    for (after, most) in [(390, 2), (1190, 3), (2390, 5)] {
        let end = start.after(Duration::from_millis(after));
        let made = requests.iter().filter(|one| one.at < end).count();
        assert!(made <= most, "{made} tries within {after} ms");
    }
}

/// A client that cannot be held is asked to return while recovery is possible, and continues its earlier state.
#[tokio::test]
async fn client_that_cannot_be_held_is_asked_to_return() {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.limits.hold = Duration::from_millis(300);
    };
    let ground = Ground::with(Gemini, &[&down_for("900ms")], set).await;
    let headers = [("user-agent", "GeminiCLI-tui/0.61.0/gemini-3-pro (linux)")];
    let mut told = Vec::new();
    let reply = loop {
        let reply: Reply = ground
            .send(Method::POST, GEMINI, &headers, GEMINI_BODY)
            .await;
        if reply.status.as_u16() == 200 {
            break reply;
        }
        assert_eq!(reply.status.as_u16(), 503, "{reply:?}");
        assert_eq!(reply.header("x-should-retry"), "true");
        assert!(!reply.header("retry-after").is_empty());
        told.push(reply);
        assert!(told.len() < 20);
    };
    assert!(reply.body.contains("finishReason"), "{}", reply.body);
    assert!(!told.is_empty());
    // Its own second attempt would come after 5 s, so the gateway may make two before that.
    assert!(
        ground.asked()[0] <= 3,
        "{:?} after {}",
        ground.asked(),
        told.len()
    );
}

/// Keep-alive bytes keep a client waiting, but a silent upstream is retried when the client itself would have retried.
#[tokio::test]
async fn silent_upstream_is_retried_at_the_clients_own_timeout() {
    let silent = format!("[[step]]\nhang = {{}}\n\n{GOOD}");
    for (name, value) in [
        ("x-stainless-timeout", "3"),
        ("x-stainless-read-timeout", "3.0"),
        ("x-stainless-timeout", "1"),
    ] {
        let set = |settings: &mut GatewaySettings| {
            patient(settings);
            settings.limits.keep_alive = Duration::from_millis(100);
            settings.limits.response = Duration::from_secs(6);
        };
        let ground = Ground::with(Anthropic, &[&silent], set).await;
        let reply = ground
            .send(Method::POST, APIS[0].path, &[(name, value)], APIS[0].body)
            .await;
        assert!(reply.body.contains(APIS[0].end), "{name}: {reply:?}");
        assert_eq!(ground.asked(), [2], "{name}");
        let waited = ground.failure_evidence();
        let limit = if value == "1" { "1 s" } else { "2 s" };
        assert!(
            waited[0].contains(&format!("no response within {limit}")),
            "{waited:?}"
        );
    }
}

/// After the time limit the client gets a permanent failure.
#[tokio::test]
async fn client_gets_a_permanent_failure_at_the_time_limit() {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.policy.give_up_after = Some(Duration::from_millis(400));
    };
    let ground = Ground::with(Anthropic, &[&down_for("always")], set).await;
    let body = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
    let reply = ground.post("/anthropic/v1/messages", body).await;
    assert_eq!(reply.status.as_u16(), 503, "{reply:?}");
    assert_eq!(reply.header("x-should-retry"), "false");
}

/// Gemini CLI takes a stream that ends with an error as complete: its connection ends as its upstream's did.
#[tokio::test]
async fn client_that_ignores_stream_errors_sees_the_connection_close() {
    let cut = "[[step]]\ncut_at = { after = 2 }\ntimes = \"always\"\n";
    let ground = Ground::with(Gemini, &[cut], patient).await;
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .build_http::<http_body_util::Full<bytes::Bytes>>();
    let request = hyper::Request::post(format!("http://{}{GEMINI}", ground.gateway.address()))
        .header("user-agent", "GeminiCLI/0.61.0/gemini-3-pro (linux; x64)")
        .body(http_body_util::Full::from(GEMINI_BODY))
        .unwrap();
    let response = client.request(request).await.unwrap();
    let body = http_body_util::BodyExt::collect(response.into_body()).await;
    assert!(body.is_err(), "{body:?}");
    assert_eq!(ground.record().await.outcome, ApiCallOutcome::Truncated);
}

/// A configured fallback is used after two retries at most; a silent upstream is tried only once before.
#[tokio::test]
async fn fallback_is_used_after_two_retries() {
    for (fault, tries) in [("status = { code = 503 }", 3), ("hang = {}", 1)] {
        let set = |settings: &mut GatewaySettings| {
            settings.policy = RetryPolicy::default();
            settings.limits.fallback_silence = Duration::from_millis(200);
        };
        let primary = format!("[[step]]\n{fault}\ntimes = \"always\"\n");
        let ground = Ground::with(OpenAi, &[&primary, GOOD], set).await;
        let reply = ground.chat(true).await;
        assert_eq!(
            (reply.status.as_u16(), ground.asked()),
            (200, vec![tries, 1]),
            "{fault}"
        );
    }
}

/// If all upstreams are down, each is tried once per round, and the first to recover answers.
#[tokio::test]
async fn all_upstreams_are_retried_until_one_recovers() {
    let ground = Ground::with(OpenAi, &[&down_for("always"), &down_for("700ms")], patient).await;
    let reply = ground.chat(true).await;
    assert!(reply.body.contains("[DONE]"), "{reply:?}");
    let events = ground.book.events.lock().unwrap();
    let failed = events
        .iter()
        .filter(|event| matches!(event, Event::CallFailed(_)));
    assert!(failed.count() > 4);
}
