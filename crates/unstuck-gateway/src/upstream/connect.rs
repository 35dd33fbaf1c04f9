//! Connections to upstreams: TLS, HTTP/1.1 and 2, and the proxies that the environment names.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// What connects to upstreams.
pub(super) type Https = HttpsConnector<Connector>;

/// A connection to an upstream.
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// What connects within that time, or not at all.
pub(super) fn https(connect: Duration) -> Https {
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    http.enforce_http(false);
    http.set_connect_timeout(Some(connect));
    http.set_keepalive(Some(Duration::from_secs(60)));
    let connector = Connector {
        http,
        proxies: Arc::new(Matcher::from_env()),
    };
    // Those whom this machine believes, and the usual ones where it does not say.
    HttpsConnectorBuilder::new()
        .with_native_roots()
        .unwrap_or_else(|_| HttpsConnectorBuilder::new().with_webpki_roots())
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(connector)
}

/// Connects directly, or through the proxy that the environment names for an address.
#[derive(Clone)]
pub(crate) struct Connector {
    http: HttpConnector,
    proxies: Arc<Matcher>,
}

type Connecting = dyn Future<Output = Result<TokioIo<TcpStream>, io::Error>> + Send;

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<Connecting>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let mut http = self.http.clone();
        let Some(proxy) = self.proxies.intercept(&target) else {
            return Box::pin(async move { http.call(target).await.map_err(io::Error::other) });
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), http);
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        Box::pin(async move { tunnel.call(target).await.map_err(io::Error::other) })
    }
}
