//! The records of a gateway: in a real store, from real calls, and by processes that are killed.

mod keeping;
mod processes;
mod release_waves;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tempfile::TempDir;
use unstuck_core::decision::{Jitter, TokenUsage};
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord};
use unstuck_core::redact::Redactor;
use unstuck_core::{RetryPolicy, RunId, Timestamp};
use unstuck_faults::{FaultScript, FaultServer};
use unstuck_gateway::protocol::Protocol;
use unstuck_gateway::{
    BuiltInKnowledge, Gateway, GatewayRecorder, GatewaySettings, StoreRecorder,
    StoreRecorderOptions, Upstream,
};
use unstuck_store::{
    EventPayloadRedactor, LeaseOwner, MaintenanceReport, MaintenanceTask, Store, StoreLocation,
    StoreOptions,
};

/// The warnings of a recorder.
type Said = Arc<Mutex<Vec<String>>>;

/// A directory with one store.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn location(&self) -> StoreLocation {
        StoreLocation::file(self.folder.path().join("unstuck.db"))
    }

    /// Returns everything on disk as text.
    fn text(&self) -> String {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let read = |file: std::fs::DirEntry| std::fs::read(file.path()).unwrap();
        let bytes: Vec<u8> = files.flat_map(|file| read(file.unwrap())).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

async fn opened(location: &StoreLocation) -> Store {
    let redactor = Redactor::new([]);
    let options = StoreOptions {
        redact: Some(EventPayloadRedactor::new(move |value| {
            redactor.redact_value(value)
        })),
        ..StoreOptions::default()
    };
    Store::open(location, options).await.unwrap()
}

fn books(store: &Store, said: &Said) -> Arc<StoreRecorder> {
    let said = Arc::clone(said);
    let options = StoreRecorderOptions {
        project: "/home/me/shop".into(),
        knowledge: "0.1.0".into(),
        owner: Some(LeaseOwner {
            host: "here".into(),
            boot: "b1".into(),
            pid: std::process::id(),
            started: 7,
        }),
        build_messages: None,
        warn: Box::new(move |text| said.lock().unwrap().push(text.to_owned())),
    };
    Arc::new(StoreRecorder::start(store.clone(), options))
}

/// Starts a gateway with a recorder, in front of a server that plays this script.
async fn gateway(script: &str, books: &Arc<StoreRecorder>) -> (Gateway, FaultServer) {
    let script: FaultScript = script.parse().unwrap();
    let server = FaultServer::start(script).unwrap();
    let base = format!("{}/v1", server.url());
    let upstream = Upstream::new("first", Protocol::OpenAi, &base).unwrap();
    let mut settings = GatewaySettings::new(vec![upstream]);
    settings.policy = RetryPolicy {
        max_retries: 2,
        give_up_after: None,
        backoff_base: 0.01,
        max_backoff: 0.02,
        jitter: Jitter::None,
        ..RetryPolicy::default()
    };
    let ledger = Arc::clone(books) as Arc<dyn GatewayRecorder>;
    let gateway = Gateway::start(settings, Arc::new(BuiltInKnowledge::default()), ledger);
    (gateway.await.unwrap(), server)
}

/// Sends a chat completion and returns the status.
async fn chat(gateway: &Gateway, key: &str, prompt: &str) -> u16 {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let body =
        format!(r#"{{"model":"gpt-5","messages":[{{"role":"user","content":"{prompt}"}}]}}"#);
    let url = format!(
        "{}/chat/completions",
        gateway.base_url(Protocol::OpenAi, None)
    );
    let request = Request::post(url)
        .header("authorization", format!("Bearer {key}"))
        .header("user-agent", "codex_cli_rs/1.2.3 (Linux)")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let answer = client.request(request).await.unwrap();
    let status = answer.status().as_u16();
    answer.into_body().collect().await.unwrap();
    status
}

/// Returns the record of a call that was answered at once.
fn called(run: &RunId, number: usize, at: Timestamp) -> ApiCallRecord {
    ApiCallRecord {
        call: format!("{number:016x}"),
        run: run.clone(),
        session: run.session_id(1),
        at,
        protocol: "openai".into(),
        endpoint: "chat".into(),
        upstream: "first".into(),
        requested_model: Some("gpt-5".into()),
        model: Some("gpt-5".into()),
        is_stream: false,
        outcome: ApiCallOutcome::Answered,
        status: 200,
        kind: None,
        attempts: 1,
        waited_ms: 0,
        first_byte_ms: 4,
        duration_ms: 20,
        sent_bytes: 400,
        tokens: Some(TokenUsage {
            input: 10,
            cached: 0,
            output: 5,
            requests: 1,
        }),
        cost_usd: Some(0.001),
    }
}

async fn sound(store: &Store) {
    let checked = store.maintain(MaintenanceTask::Check).await.unwrap();
    assert!(
        matches!(&checked, MaintenanceReport::Checked { findings, .. } if findings.is_empty()),
        "{checked:?}"
    );
}

/// Waits until a condition is true, up to a limit.
async fn until(most: Duration, mut is_so: impl AsyncFnMut() -> bool) -> bool {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(most, wait).await.is_ok()
}
