//! Connections to upstreams: TLS, HTTP/1.1 and 2.

use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::header::PROXY_AUTHORIZATION;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::believed;
use super::body::Outgoing;
use super::proxy::{Connector, Proxies};
use crate::error::GatewayError;
use crate::settings::Network;

/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(60);

/// What sends requests to upstreams.
pub(crate) struct Sender {
    client: Client<HttpsConnector<Connector>, Outgoing>,
    proxies: Arc<Proxies>,
}

impl Sender {
    /// One with connections of its own.
    pub(crate) fn new(connect: Duration, network: &Network) -> Result<Self, GatewayError> {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        http.set_connect_timeout(Some(connect));
        http.set_keepalive(Some(Duration::from_secs(60)));
        let proxies = Arc::new(Proxies::new(network)?);
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(believed::tls(network)?)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(Connector::new(http, Arc::clone(&proxies)));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .timer(TokioTimer::new())
            .build(https);
        Ok(Self { client, proxies })
    }

    /// Sends a request.
    pub(crate) fn request(&self, mut request: Request<Outgoing>) -> ResponseFuture {
        if let Some(auth) = self.proxies.word_in(request.uri()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, auth);
        }
        self.client.request(request)
    }
}
