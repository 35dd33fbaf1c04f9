//! Wait times and their reasons: silent upstreams, the clock of a session, a missing network, and visible waits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use hyper::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use unstuck_core::agent::ClientRetryBehavior;
use unstuck_core::decision::{CallWait, Jitter, WaitPurpose};
use unstuck_core::event::{ApiCallOutcome, CallFailed, CallHeld};
use unstuck_core::{Event, FailureKind, RetryPolicy, Timestamp};
use unstuck_gateway::protocol::Protocol::OpenAi;
use unstuck_gateway::{GatewaySettings, Upstream};
use unstuck_network::NetworkProbe;

use crate::Ground;

const GOOD: &str = "[[step]]\nanswer = { text = \"Done\" }\ntimes = \"always\"\n";
const CHAT: &str = "/openai/v1/chat/completions";
/// The time limit of a test's waits.
const LONG: Duration = Duration::from_secs(30);

fn always(fault: &str) -> String {
    format!("[[step]]\n{fault}\ntimes = \"always\"\n")
}

fn once(fault: &str) -> String {
    format!("[[step]]\n{fault}\n\n{GOOD}")
}

/// Returns a request without a stream, limited to that many output tokens.
fn whole(max_tokens: u64) -> String {
    format!(
        r#"{{"model":"gpt-x","max_tokens":{max_tokens},"messages":[{{"role":"user","content":"Fix"}}]}}"#
    )
}

/// Sets the default policy, with short waits.
fn patient(settings: &mut GatewaySettings) {
    settings.policy = RetryPolicy {
        backoff_base: 0.005,
        max_backoff: 0.05,
        jitter: Jitter::Equal,
        ..RetryPolicy::default()
    };
    settings.client_retries.waits = vec![0.01; 1000];
}

impl Ground {
    /// Waits for an event and returns the part that is found.
    async fn event<T>(&self, find: impl Fn(&Event) -> Option<T>) -> T {
        let finding = async {
            loop {
                let found = self.book.events.lock().unwrap().iter().find_map(&find);
                if let Some(found) = found {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let found = tokio::time::timeout(LONG, finding).await;
        found.expect("no such event was written down")
    }

    async fn failed(&self) -> CallFailed {
        self.event(|event| match event {
            Event::CallFailed(failed) => Some((**failed).clone()),
            _ => None,
        })
        .await
    }

    async fn held(&self) -> CallHeld {
        self.event(|event| match event {
            Event::CallHeld(held) => Some(held.clone()),
            _ => None,
        })
        .await
    }
}

/// A response without a stream is not waited for longer than a slow model needs to write it.
#[tokio::test]
async fn silent_upstream_is_retried_without_a_stream() {
    let (_tell, told) = watch::channel(false);
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.limits.response = Duration::from_millis(300);
        settings.upstreams[0].is_nearby = false;
        settings.network_probe = NetworkProbe::Simulated(told);
    };
    let ground = Ground::with(OpenAi, &[&once("hang = {}")], set).await;
    let body = whole(9);
    let asking = tokio::time::timeout(LONG, ground.post(CHAT, &body));
    let reply = asking.await.expect("it hangs");
    assert_eq!((reply.status.as_u16(), ground.asked()), (200, vec![2]));
    assert_eq!(ground.failed().await.diagnosis.kind, FailureKind::Timeout);
}

/// One that takes longer than the head of a stream may take is not cut off.
#[tokio::test]
async fn long_complete_response_gets_enough_time() {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.limits.response = Duration::from_millis(100);
        settings.upstreams[0].is_nearby = false;
    };
    let slow = always("slow_first_token = { wait = \"1s\" }");
    let ground = Ground::with(OpenAi, &[&slow], set).await;
    let reply = ground.post(CHAT, &whole(100)).await;
    assert_eq!((reply.status.as_u16(), ground.asked()), (200, vec![1]));
}

/// One whose head comes at once and whose body comes when it is complete is not cut off either.
#[tokio::test]
async fn complete_response_with_late_body_gets_enough_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert_ne!(stream.read(&mut request).await.unwrap(), 0);
        let body = r#"{"choices":[{"message":{"content":"Done"},"finish_reason":"stop"}]}"#;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(800)).await;
        stream.write_all(body.as_bytes()).await.unwrap();
    });
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.limits.stall = Duration::from_millis(100);
        settings.upstreams[0] = Upstream::new("u0", OpenAi, &url).unwrap();
    };
    let ground = Ground::with(OpenAi, &[GOOD], set).await;
    let body = whole(9);
    let asking = tokio::time::timeout(LONG, ground.post(CHAT, &body));
    let reply = asking.await.expect("it hangs");
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
    assert_eq!(ground.record().await.outcome, ApiCallOutcome::Answered);
    serving.await.unwrap();
}

/// With a fallback, a silent upstream is left much earlier, also without a stream.
#[tokio::test]
async fn silent_upstream_fails_over_without_a_stream() {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.limits.fallback_silence = Duration::from_millis(200);
    };
    let ground = Ground::with(OpenAi, &[&always("hang = {}"), GOOD], set).await;
    let body = whole(9);
    let asking = tokio::time::timeout(LONG, ground.post(CHAT, &body));
    let reply = asking.await.expect("it hangs");
    assert_eq!((reply.status.as_u16(), ground.asked()), (200, vec![1, 1]));
}

/// A client whose own time limit passed in silence is answered by the fallback when it returns.
#[tokio::test]
async fn client_returning_from_a_silent_upstream_gets_the_fallback() {
    let ground = Ground::with(OpenAi, &[&always("hang = {}"), GOOD], patient).await;
    let body = r#"{"model":"gpt-x","messages":[{"role":"user","content":"Fix"}]}"#;
    let headers = [("x-stainless-timeout", "1.2")];
    let told = ground.send(Method::POST, CHAT, &headers, body).await;
    assert_eq!(told.status.as_u16(), 504, "{told:?}");
    assert_eq!(told.header("x-should-retry"), "true");
    let reply = ground.send(Method::POST, CHAT, &headers, body).await;
    assert_eq!((reply.status.as_u16(), ground.asked()), (200, vec![1, 1]));
}

/// A stream that stalls before its first content is retried invisibly.
#[tokio::test]
async fn stall_before_the_first_content_is_retried() {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.limits.first_content = Duration::from_millis(300);
    };
    let ground = Ground::with(OpenAi, &[&once("stall_at = { after = 0 }")], set).await;
    let reply = ground.chat(true).await;
    assert!(reply.body.contains("[DONE]"), "{}", reply.body);
    assert!(!reply.body.contains("error"), "{}", reply.body);
    assert_eq!(ground.asked(), [2]);
}

/// A client whose responses break off repeatedly causes at most one more request than it would by itself; then it waits
/// for a probe permit.
#[tokio::test]
async fn repeatedly_broken_streams_wait_for_probes() {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.client_retries.waits = vec![0.01; 2];
        settings.probe_every = Duration::from_secs(3600);
    };
    let ground = Ground::with(OpenAi, &[&always("cut = {}")], set).await;
    // Three of its own, one more, and the first probe.
    for number in 1..=5 {
        let reply = ground.chat(true).await;
        assert!(reply.body.contains("error"), "{number}: {}", reply.body);
    }
    assert_eq!(ground.asked(), [5]);
    let next = ground.chat(true);
    tokio::select! {
        reply = next => panic!("it was asked for at once: {}", reply.body),
        held = ground.held() => assert_eq!(held.kind, FailureKind::NetworkError),
    }
    assert_eq!(ground.asked(), [5]);
}

/// A session whose other calls succeed makes progress: the failing one is not given up.
#[tokio::test]
async fn responses_to_other_calls_are_progress() {
    let script = format!(
        "[[step]]\nwhen = {{ model = \"down\" }}\nstatus = {{ code = 503 }}\ntimes = \"always\"\n\n{GOOD}"
    );
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.policy.give_up_after = Some(Duration::from_millis(900));
    };
    let ground = Ground::with(OpenAi, &[&script], set).await;
    let path = format!("/s/one{CHAT}");
    let body = |model: &str| {
        format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"Fix"}}]}}"#)
    };
    let (down, up) = (body("down"), body("up"));
    let mut failing = std::pin::pin!(ground.post(&path, &down));
    for _ in 0..10 {
        let answered = async {
            tokio::time::sleep(Duration::from_millis(250)).await;
            ground.post(&path, &up).await
        };
        tokio::select! {
            told = &mut failing => panic!("given up after progress: {told:?}"),
            reply = answered => assert_eq!(reply.status.as_u16(), 200),
        }
    }
    let told = failing.await;
    assert_eq!(told.status.as_u16(), 503, "{told:?}");
    assert_eq!(told.header("x-should-retry"), "false");
}

/// Each of several calls of a session would be retried by its client; together they get at most one attempt more.
#[tokio::test]
async fn calls_of_a_session_are_one_attempt_ahead_together() {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.client_retries = ClientRetryBehavior {
            waits: vec![0.5, 1.0, 1.0],
            ..ClientRetryBehavior::default()
        };
        settings.policy.give_up_after = Some(Duration::from_secs(2));
    };
    let ground = Ground::with(OpenAi, &[&always("status = { code = 503 }")], set).await;
    let bodies = [1, 2, 3].map(whole);
    let asked = bodies
        .iter()
        .map(|body| ground.post("/s/one/openai/v1/chat/completions", body));
    join_all(asked).await;
    let requests = ground.upstreams[0].requests();
    let start = requests[0].at;
    // Their clients would have tried once each, then twice, then three times.
    for (after, most) in [(490, 4), (1490, 7), (2490, 13)] {
        let end = start.after(Duration::from_millis(after));
        let made = requests.iter().filter(|one| one.at < end).count();
        assert!(made <= most, "{made} tries within {after} ms");
    }
}

/// Without a network a call waits, which uses up no limit, and continues when the network is back.
#[tokio::test]
async fn call_waits_for_the_network() {
    let (tell, told) = watch::channel(true);
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.limits.response = Duration::from_millis(200);
        settings.upstreams[0].is_nearby = false;
        settings.network_probe = NetworkProbe::Simulated(told);
        settings.policy.give_up_after = Some(Duration::from_millis(600));
    };
    let ground = Ground::with(OpenAi, &[&once("hang = {}")], set).await;
    let body = whole(9);
    let mut asking = std::pin::pin!(ground.post(CHAT, &body));
    let failed = tokio::select! {
        reply = &mut asking => panic!("it has not waited: {reply:?}"),
        failed = ground.failed() => failed,
    };
    assert_eq!(failed.decision.wait_purpose, WaitPurpose::Network);
    // For longer than it may go without progress.
    let waited = tokio::time::timeout(Duration::from_millis(1500), &mut asking).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(ground.asked(), [1]);
    tell.send(false).unwrap();
    let reply = tokio::time::timeout(LONG, asking).await.expect("it hangs");
    assert_eq!((reply.status.as_u16(), ground.asked()), (200, vec![2]));
    assert_eq!(ground.record().await.outcome, ApiCallOutcome::Recovered);
}

/// A client that cannot be held until the network is back is asked to return, and no request is sent meanwhile.
#[tokio::test]
async fn client_is_asked_to_return_while_offline() {
    let (tell, told) = watch::channel(true);
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.limits.response = Duration::from_millis(200);
        settings.limits.hold = Duration::from_secs(2);
        settings.upstreams[0].is_nearby = false;
        settings.network_probe = NetworkProbe::Simulated(told);
    };
    let ground = Ground::with(OpenAi, &[&once("hang = {}")], set).await;
    for _ in 0..2 {
        let reply = ground.post(CHAT, &whole(9)).await;
        assert_eq!(reply.header("x-should-retry"), "true", "{reply:?}");
        assert_eq!(ground.asked(), [1]);
    }
    tell.send(false).unwrap();
    for _ in 0..10 {
        let reply = ground.post(CHAT, &whole(9)).await;
        if reply.header("x-should-retry") != "true" {
            assert_eq!((reply.status.as_u16(), ground.asked()), (200, vec![2]));
            return;
        }
    }
    panic!("it does not go on");
}

/// An unknown host gets a short time, if there is a network.
#[tokio::test]
async fn unknown_host_gets_a_short_time() {
    let (_tell, told) = watch::channel(false);
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        // No resolver is asked for such a name.
        settings.upstreams[0] = Upstream::new("u0", OpenAi, "http://nosuch..invalid/v1").unwrap();
        settings.network_probe = NetworkProbe::Simulated(told);
    };
    let ground = Ground::with(OpenAi, &[GOOD], set).await;
    let body = whole(9);
    let asking = ground.post(CHAT, &body);
    let failed = tokio::select! {
        reply = asking => panic!("{reply:?}"),
        failed = ground.failed() => failed,
    };
    assert_eq!(
        failed.diagnosis.kind,
        FailureKind::NetworkError,
        "{failed:?}"
    );
    let decision = failed.decision;
    let time = decision.give_up_at.unwrap().since(decision.decided_at);
    assert!(time <= Duration::from_secs(30), "{time:?}");
}

/// A call that is queued is visible as waiting, and then as running.
#[tokio::test]
async fn queued_call_is_visible() {
    let set = |settings: &mut GatewaySettings| {
        patient(settings);
        settings.lanes.max_in_flight = Some(1);
    };
    let script = format!("[[step]]\nslow_first_token = {{ wait = \"2500ms\" }}\n\n{GOOD}");
    let ground = Ground::with(OpenAi, &[&script], set).await;
    let (first, second) = (whole(1), whole(2));
    let both = async {
        let first = ground.post("/s/first/openai/v1/chat/completions", &first);
        let second = async {
            while ground.asked() == [0] {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            ground
                .post("/s/second/openai/v1/chat/completions", &second)
                .await
        };
        tokio::join!(first, second)
    };
    let mut both = std::pin::pin!(both);
    let held = tokio::select! {
        replies = &mut both => panic!("nobody was seen to wait: {replies:?}"),
        held = ground.held() => held,
    };
    assert_eq!(held.kind, FailureKind::ServerOverloaded);
    let (one, other) = both.await;
    assert_eq!((one.status.as_u16(), other.status.as_u16()), (200, 200));
    let resumed = ground.event(|event| match event {
        Event::CallResumed(resumed) => Some(resumed.call.clone()),
        _ => None,
    });
    assert_eq!(resumed.await, held.call);
}

/// Sets a hold that outlasts a stated wait of ten minutes.
fn holding(settings: &mut GatewaySettings) {
    patient(settings);
    settings.limits.hold = Duration::from_secs(3600);
}

#[expect(clippy::disallowed_methods, reason = "the gateway uses the real clock")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

impl Ground {
    /// Waits until a call is held after this number of requests, and returns its wait.
    async fn held_after(&self, requests: usize) -> CallWait {
        let looking = async {
            loop {
                let wait = self
                    .gateway
                    .sessions()
                    .first()
                    .and_then(|session| session.next_call_wait(now()));
                if let Some(wait) = wait.filter(|_| self.asked()[0] == requests) {
                    return wait;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let held = tokio::time::timeout(LONG, looking).await;
        held.unwrap_or_else(|_| panic!("no call is held after {:?} requests", self.asked()))
    }

    /// Requests a retry of the held calls, as a person does.
    fn retry_held_calls(&self) {
        for session in self.gateway.sessions() {
            session.retry_held_calls(now());
        }
    }
}

/// A person who requests a retry gets one attempt at once, in spite of a stated wait; then the call waits again.
#[tokio::test]
async fn held_call_is_tried_once_when_a_person_requests_it() {
    let limited = format!("[[step]]\nrate_limit = {{ retry_after = 600 }}\ntimes = 2\n\n{GOOD}");
    let ground = Ground::with(OpenAi, &[&limited], holding).await;
    let person = async {
        for requests in 1..=2 {
            let wait = ground.held_after(requests).await;
            assert_eq!(wait.kind, FailureKind::RateLimitTimed);
            assert!(wait.until > now().after(Duration::from_secs(500)));
            ground.retry_held_calls();
        }
    };
    let both = async { tokio::join!(ground.chat(true), person) };
    let (reply, ()) = tokio::time::timeout(LONG, both).await.expect("it is held");
    assert!(reply.body.contains("[DONE]"), "{reply:?}");
    assert_eq!(ground.asked(), [3]);
    let session = ground.gateway.sessions().remove(0);
    assert_eq!(session.next_call_wait(now()), None);
    // The limit is over: the next call is not held by what was stated before.
    let next = tokio::time::timeout(LONG, ground.chat(true)).await;
    assert!(next.expect("it is held").body.contains("[DONE]"));
}

/// A call in the queue of a limited upstream is shown as held, and tried when a person requests it.
#[tokio::test]
async fn queued_call_is_tried_when_a_person_requests_it() {
    let limited = format!("[[step]]\nrate_limit = {{ retry_after = 600 }}\n\n{GOOD}");
    let ground = Ground::with(OpenAi, &[&limited], holding).await;
    let person = async {
        ground.held_after(1).await;
        let queued = async {
            ground.held().await;
            ground.retry_held_calls();
        };
        tokio::join!(ground.chat(true), queued).0
    };
    let both = async { tokio::join!(ground.chat(true), person) };
    let (first, second) = tokio::time::timeout(LONG, both).await.expect("it is held");
    for reply in [first, second] {
        assert!(reply.body.contains("[DONE]"), "{reply:?}");
    }
    assert_eq!(ground.asked(), [3]);
}
