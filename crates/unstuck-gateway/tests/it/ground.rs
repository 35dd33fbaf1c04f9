//! A test setup with a gateway, its upstreams, and a client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use unstuck_core::decision::Jitter;
use unstuck_core::event::ApiCallRecord;
use unstuck_core::{Event, RetryPolicy, RunId, Timestamp};
use unstuck_faults::{FaultScript, FaultServer};
use unstuck_gateway::protocol::Protocol;
use unstuck_gateway::{
    BuiltInKnowledge, Gateway, GatewayRecorder, GatewaySession, GatewaySessionSetup,
    GatewaySettings, GatewayTimeLimits, RecorderLookupFuture, Upstream,
};
use unstuck_store::ProbeClaimOutcome;

/// A recorder that keeps records in memory.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) calls: Mutex<Vec<ApiCallRecord>>,
    pub(crate) events: Mutex<Vec<Event>>,
}

impl GatewayRecorder for Book {
    fn begin_session(
        &self,
        name: &str,
        _: Option<&str>,
        policy: &RetryPolicy,
    ) -> GatewaySessionSetup {
        let run = RunId::new("testrun000");
        GatewaySessionSetup {
            name: name.to_owned(),
            session: run.session_id(1),
            run,
            project: String::new(),
            policy: policy.clone(),
            budget: None,
            spent: 0.0,
            escalates: true,
            agent: None,
        }
    }

    fn record_call(&self, record: ApiCallRecord) {
        self.calls.lock().unwrap().push(record);
    }

    fn record_event(&self, _: &GatewaySession, _: Timestamp, event: Event) {
        self.events.lock().unwrap().push(event);
    }

    fn claim_probe<'a>(
        &'a self,
        _: &'a str,
        _: Timestamp,
        _: Duration,
    ) -> RecorderLookupFuture<'a, ProbeClaimOutcome> {
        Box::pin(std::future::ready(None))
    }

    fn upstream_recovered_at<'a>(&'a self, _: &'a str) -> RecorderLookupFuture<'a, Timestamp> {
        Box::pin(std::future::ready(None))
    }

    fn count_released_call<'a>(
        &'a self,
        _: &'a str,
        _: Timestamp,
    ) -> RecorderLookupFuture<'a, u32> {
        Box::pin(std::future::ready(None))
    }

    fn record_upstream_recovery(&self, _: &str, _: Timestamp) {}
}

/// A gateway and its surroundings.
pub(crate) struct Ground {
    pub(crate) gateway: Gateway,
    pub(crate) upstreams: Vec<FaultServer>,
    pub(crate) book: Arc<Book>,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// The response that a client received.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// Returns a policy with two retries and almost no wait.
pub(crate) fn quick() -> RetryPolicy {
    RetryPolicy {
        max_retries: 2,
        give_up_after: None,
        backoff_base: 0.01,
        max_backoff: 0.02,
        jitter: Jitter::None,
        ..RetryPolicy::default()
    }
}

/// Shortens the time limits, for tests in which they expire.
pub(crate) fn impatient(settings: &mut GatewaySettings) {
    let short = Duration::from_millis(500);
    settings.limits = GatewayTimeLimits {
        response: short,
        first_content: short,
        stall: short,
        ..GatewayTimeLimits::default()
    };
}

pub(crate) fn script(text: &str) -> FaultServer {
    let script: FaultScript = text.parse().unwrap();
    FaultServer::start(script).unwrap()
}

impl Ground {
    /// Starts a gateway in front of upstreams of one protocol that play these scripts.
    pub(crate) async fn new(protocol: Protocol, scripts: &[&str]) -> Self {
        Self::with(protocol, scripts, |_| {}).await
    }

    /// Starts a gateway with changed settings.
    pub(crate) async fn with(
        protocol: Protocol,
        scripts: &[&str],
        change: impl FnOnce(&mut GatewaySettings),
    ) -> Self {
        let upstreams: Vec<_> = scripts.iter().map(|text| script(text)).collect();
        let named = upstreams.iter().enumerate().map(|(at, server)| {
            let base = match protocol {
                Protocol::OpenAi => format!("{}/v1", server.url()),
                Protocol::Anthropic | Protocol::Gemini => server.url(),
            };
            Upstream::new(&format!("u{at}"), protocol, &base).unwrap()
        });
        let mut settings = GatewaySettings::new(named.collect());
        settings.policy = quick();
        change(&mut settings);
        let book = Arc::new(Book::default());
        let knows = Arc::new(BuiltInKnowledge::default());
        let gateway = Gateway::start(
            settings,
            knows,
            Arc::clone(&book) as Arc<dyn GatewayRecorder>,
        )
        .await
        .unwrap();
        Self {
            gateway,
            upstreams,
            book,
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// Sends a request to the OpenAI Chat Completions API.
    pub(crate) async fn chat(&self, stream: bool) -> Reply {
        let body = format!(
            r#"{{"model":"gpt-x","stream":{stream},"messages":[{{"role":"user","content":"Fix the tests"}}]}}"#
        );
        self.post("/openai/v1/chat/completions", &body).await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Reply {
        self.send(
            Method::POST,
            path,
            &[("content-type", "application/json")],
            body,
        )
        .await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.gateway.address()))
            .header("x-api-key", "key-1")
            .header("authorization", "Bearer key-1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(body.to_owned())).unwrap();
        let response = self.client.request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply {
            status: head.status,
            headers: head.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Returns the number of requests to each upstream.
    pub(crate) fn asked(&self) -> Vec<usize> {
        self.upstreams
            .iter()
            .map(|server| server.requests().len())
            .collect()
    }

    /// Returns the newest recorded call.
    pub(crate) async fn record(&self) -> ApiCallRecord {
        // A stream is recorded when its last byte was taken, which the client may see first.
        for _ in 0..100 {
            if let Some(record) = self.book.calls.lock().unwrap().last() {
                return record.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("no call was written down");
    }

    /// Returns the reason of the newest recorded failure.
    pub(crate) fn reason(&self) -> String {
        let events = self.book.events.lock().unwrap();
        let reasons = events.iter().rev().filter_map(|event| match event {
            Event::CallFailed(call) => Some(call.decision.reason.clone()),
            _ => None,
        });
        reasons.take(1).collect()
    }

    /// Returns the evidence of the recorded failures.
    pub(crate) fn failure_evidence(&self) -> Vec<String> {
        let events = self.book.events.lock().unwrap();
        let evidence = events.iter().filter_map(|event| match event {
            Event::CallFailed(call) => Some(format!("{:?}", call.diagnosis.evidence)),
            _ => None,
        });
        evidence.collect()
    }

    /// Returns the kinds of the recorded failures.
    pub(crate) fn failures(&self) -> VecDeque<String> {
        let events = self.book.events.lock().unwrap();
        let kinds = events.iter().filter_map(|event| match event {
            Event::CallFailed(call) => Some(call.diagnosis.kind.to_string()),
            _ => None,
        });
        kinds.collect()
    }
}
