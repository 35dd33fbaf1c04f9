//! The responses of calls in progress when the gateway stops.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use unstuck_core::FailureKind;
use unstuck_core::event::ApiCallOutcome;
use unstuck_gateway::GatewaySettings;

use crate::Ground;
use crate::streams::{APIS, Api};

/// A stream that stalls after some content.
const STALLED: &str = "[pace]\nchunks = 9\nchunk_bytes = 5\n\n[[step]]\nstall_at = { after = 5 }\ntimes = \"always\"\n";
const SILENT: &str = "[[step]]\nhang = {}\ntimes = \"always\"\n";

/// The HTTP version between client and gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Http1,
    Http2,
}

async fn asked(ground: &Ground, api: &Api, spoken: Spoken) -> Response<Incoming> {
    let client = Client::builder(TokioExecutor::new())
        .http2_only(spoken == Spoken::Http2)
        .build_http::<Full<Bytes>>();
    let request = Request::post(format!("http://{}{}", ground.gateway.address(), api.path));
    let request = request.body(Full::from(api.body)).unwrap();
    client.request(request).await.unwrap()
}

/// Stops the gateway at once, and returns the rest of the response.
async fn rest(ground: Ground, response: Response<Incoming>) -> String {
    let reading = tokio::spawn(response.into_body().collect());
    ground.gateway.stop_or_abort(std::future::ready(())).await;
    let rest = reading.await.unwrap().expect("it comes to a proper end");
    String::from_utf8(rest.to_bytes().to_vec()).unwrap()
}

/// A stream cut off by the gateway's stop never looks complete, in any protocol.
#[tokio::test]
async fn stream_cut_off_by_stop_ends_with_the_protocol_error() {
    for spoken in [Spoken::Http1, Spoken::Http2] {
        for api in APIS {
            let ground = Ground::new(api.protocol, &[STALLED]).await;
            let book = std::sync::Arc::clone(&ground.book);
            let mut response = asked(&ground, &api, spoken).await;
            let first = response.body_mut().frame().await.unwrap().unwrap();
            let first = first.into_data().unwrap();
            let rest = rest(ground, response).await;
            let place = format!("{} {spoken:?}: {rest}", api.name);
            assert!(rest.contains(api.error), "{place}");
            assert!(rest.contains("the gateway was stopped"), "{place}");
            assert!(!rest.contains(api.end), "{place}");
            let calls = book.calls.lock().unwrap();
            let [call] = &calls[..] else {
                panic!("{calls:?}");
            };
            assert_eq!(call.outcome, ApiCallOutcome::Truncated, "{place}");
            assert_eq!(call.kind, Some(FailureKind::NetworkError), "{place}");
            let event = rest.find(api.error).unwrap();
            let sent = first.len() as u64..=(first.len() + event) as u64;
            assert!(sent.contains(&call.sent_bytes), "{place}: {call:?}");
        }
    }
}

/// A client that has received only keep-alive bytes gets the error as part of the stream.
#[tokio::test]
async fn held_client_gets_the_error_in_its_stream() {
    let lively =
        |settings: &mut GatewaySettings| settings.limits.keep_alive = Duration::from_millis(20);
    for api in &APIS[..3] {
        let ground = Ground::with(api.protocol, &[SILENT], lively).await;
        let book = std::sync::Arc::clone(&ground.book);
        let mut response = asked(&ground, api, Spoken::Http1).await;
        response.body_mut().frame().await.unwrap().unwrap();
        let rest = rest(ground, response).await;
        let place = format!("{}: {rest}", api.name);
        assert!(
            rest.contains(api.error) && !rest.contains(api.end),
            "{place}"
        );
        let calls = book.calls.lock().unwrap();
        assert_eq!(calls[0].outcome, ApiCallOutcome::Failed, "{place}");
    }
}

/// A client that has received nothing yet gets an ordinary error.
#[tokio::test]
async fn waiting_client_gets_an_ordinary_error() {
    let api = &APIS[0];
    let ground = Ground::new(api.protocol, &[SILENT]).await;
    let waiting = async {
        while ground.asked() == [0] {
            tokio::task::yield_now().await;
        }
    };
    let call = tokio::spawn({
        let url = format!("http://{}{}", ground.gateway.address(), api.path);
        let request = Request::post(url).body(Full::from(api.body)).unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        async move { client.request(request).await.unwrap() }
    });
    waiting.await;
    ground.gateway.stop_or_abort(std::future::ready(())).await;
    let response = call.await.unwrap();
    assert_eq!(response.status().as_u16(), 503);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("the gateway was stopped"));
}
