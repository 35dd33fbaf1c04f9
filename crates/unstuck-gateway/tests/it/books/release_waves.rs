//! Gateways of several processes that wait for the same upstream.

use futures_util::future::join_all;
use unstuck_core::agent::ClientRetryBehavior;

use super::*;

/// The calls that each gateway holds.
const CALLS: usize = 3;

/// Starts a gateway of its own process, as `exec` does.
async fn private_gateway(store: &Store, upstream: &str) -> Gateway {
    let upstream = Upstream::new("first", Protocol::OpenAi, upstream).unwrap();
    let mut settings = GatewaySettings::new(vec![upstream]);
    settings.policy = RetryPolicy {
        backoff_base: 0.005,
        max_backoff: 0.1,
        jitter: Jitter::Equal,
        ..RetryPolicy::default()
    };
    // One attempt each, one ahead of the client, then probes.
    settings.client_retries = ClientRetryBehavior::default();
    settings.client_retries.waits = Vec::new();
    settings.probe_every = Duration::from_millis(600);
    // A probe that an open circuit holds would be neither waiting nor sent.
    settings.lanes.breaker.failures = 1000;
    let ledger = books(store, &Said::default()) as Arc<dyn GatewayRecorder>;
    Gateway::start(settings, Arc::new(BuiltInKnowledge::default()), ledger)
        .await
        .unwrap()
}

/// Sends the request of a session whose client is unknown, and returns the status.
async fn ask(gateway: &Gateway, session: &str) -> u16 {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let base = gateway.base_url(Protocol::OpenAi, Some(session));
    let body = r#"{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"Fix"}]}"#;
    let request = Request::post(format!("{base}/chat/completions"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let answer = client.request(request).await.unwrap();
    let status = answer.status().as_u16();
    answer.into_body().collect().await.unwrap();
    status
}

/// Two gateways of one store release their calls in common waves: each counts those of the other.
#[tokio::test]
async fn calls_of_two_processes_are_released_in_common_waves() {
    let place = Place::new();
    let (here, there) = (
        opened(&place.location()).await,
        opened(&place.location()).await,
    );
    // Long enough for all calls to have made the attempts of their own.
    let script = "[[step]]\nstatus = { code = 503 }\ntimes = \"3s\"\n\n[[step]]\nanswer = { text = \"Done\" }\ntimes = \"always\"\n";
    let server = FaultServer::start(script.parse::<FaultScript>().unwrap()).unwrap();
    let url = format!("{}/v1", server.url());
    let both = [
        private_gateway(&here, &url).await,
        private_gateway(&there, &url).await,
    ];
    let asked = (0..2 * CALLS).map(|number| {
        let gateway = &both[number % 2];
        async move { ask(gateway, &format!("agent-{number}")).await }
    });
    let all = tokio::time::timeout(Duration::from_secs(60), join_all(asked));
    assert_eq!(all.await.unwrap(), [200; 2 * CALLS]);
    // All but the probe were released by its success.
    let now = server.requests().last().unwrap().at;
    let upstream = Upstream::new("first", Protocol::OpenAi, &url).unwrap();
    let known = upstream.base.to_string();
    let position = here.count_released_call(&known, now).await.unwrap();
    assert_eq!(position as usize, 2 * CALLS);
}
