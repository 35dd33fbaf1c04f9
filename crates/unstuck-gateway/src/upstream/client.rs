//! The HTTP client for upstreams, with pooled connections.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http2;
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::connect::Connection as _;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower_service::Service;

use super::connector::{TlsConnector, UpstreamStream, https};
use super::http1_conn::Http1Conn;
use super::outbound_proxy::ProxyRules;
use super::pool::{ConnectionPool, Http2Conn, Origin};
use super::request_body::RequestBody;
use super::response_body::UpstreamResponseBody;
use crate::error::GatewayError;
use crate::settings::ProxyAndCertificateSettings;

/// The reason why a request got no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the URL has no host")]
    NoHost,
    #[error("cannot connect")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    #[error(transparent)]
    Lost(#[from] hyper::Error),
}

/// The HTTP client for upstreams.
#[derive(Clone)]
pub(crate) struct UpstreamClient {
    https: TlsConnector,
    proxies: Arc<ProxyRules>,
    pool: Arc<ConnectionPool>,
}

/// A new connection, by its negotiated version.
enum NewConnection {
    Http1(Http1Conn),
    Http2(Http2Conn),
}

impl UpstreamClient {
    /// Creates a client with the given connect timeout.
    pub(crate) fn new(
        connect: Duration,
        network: &ProxyAndCertificateSettings,
    ) -> Result<Self, GatewayError> {
        let proxies = Arc::new(ProxyRules::new(network)?);
        Ok(Self {
            https: https(connect, network, Arc::clone(&proxies))?,
            proxies,
            pool: Arc::default(),
        })
    }

    /// Sends a request and waits for the response head.
    pub(crate) async fn request(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<UpstreamResponseBody>, SendError> {
        let place = origin(request.uri()).ok_or(SendError::NoHost)?;
        if let Some(word) = self.proxies.proxy_authorization(request.uri()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, word);
        }
        if let Some(trunk) = self.pool.get_http2(&place) {
            match send_http2(trunk, request).await {
                Ok(response) => return Ok(response),
                // The other side closed it at the same moment.
                Err((_, Some(unsent))) => request = unsent,
                Err((lost, None)) => return Err(lost),
            }
        }
        while let Some(line) = self.pool.take_http1(&place) {
            match self.send_http1(line, &place, request).await {
                Ok(response) => return Ok(response),
                Err((_, Some(unsent))) => request = unsent,
                Err((lost, None)) => return Err(lost),
            }
        }
        // Boxed: it is rare and large, and would make every call larger.
        let connecting = Box::pin(self.connect(&place, request.uri().clone()));
        let sent = match connecting.await? {
            NewConnection::Http1(line) => self.send_http1(line, &place, request).await,
            NewConnection::Http2(trunk) => send_http2(trunk, request).await,
        };
        sent.map_err(|(lost, _)| lost)
    }

    async fn connect(&self, place: &Origin, address: Uri) -> Result<NewConnection, SendError> {
        let stream: UpstreamStream = self
            .https
            .clone()
            .call(address)
            .await
            .map_err(SendError::Connect)?;
        if !stream.connected().is_negotiated_h2() {
            return Ok(NewConnection::Http1(Http1Conn::open(stream).await?));
        }
        let (trunk, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .handshake(stream)
            .await?;
        // Errors are reported by the responses it carries.
        tokio::spawn(async {
            let _ = connection.await;
        });
        self.pool.put_http2(place.clone(), trunk.clone());
        Ok(NewConnection::Http2(trunk))
    }

    async fn send_http1(
        &self,
        mut line: Http1Conn,
        place: &Origin,
        mut request: Request<RequestBody>,
    ) -> Result<Response<UpstreamResponseBody>, (SendError, Option<Request<RequestBody>>)> {
        let whole = request.uri().clone();
        if let Some(host) = host_header(place) {
            request.headers_mut().entry(HOST).or_insert(host);
        }
        if !line.is_proxied() {
            *request.uri_mut() = origin_form(&whole);
        }
        match line.send(request).await {
            Ok(response) => Ok(response.map(|body| {
                UpstreamResponseBody::over_http1(body, line, place.clone(), Arc::clone(&self.pool))
            })),
            Err(mut lost) => {
                let unsent = lost.take_message().map(|mut unsent| {
                    *unsent.uri_mut() = whole;
                    unsent
                });
                Err((lost.into_error().into(), unsent))
            }
        }
    }
}

async fn send_http2(
    mut trunk: Http2Conn,
    request: Request<RequestBody>,
) -> Result<Response<UpstreamResponseBody>, (SendError, Option<Request<RequestBody>>)> {
    match trunk.try_send_request(request).await {
        Ok(response) => Ok(response.map(UpstreamResponseBody::over_http2)),
        Err(mut lost) => {
            let unsent = lost.take_message();
            Err((lost.into_error().into(), unsent))
        }
    }
}

fn origin(address: &Uri) -> Option<Origin> {
    let scheme = address.scheme().cloned().unwrap_or(Scheme::HTTP);
    Some((scheme, address.authority()?.clone()))
}

/// Returns the host header: without the default port.
fn host_header((scheme, authority): &(Scheme, Authority)) -> Option<HeaderValue> {
    let usual = if scheme == &Scheme::HTTPS { 443 } else { 80 };
    match authority.port_u16() {
        Some(port) if port != usual => {
            HeaderValue::from_str(&format!("{}:{port}", authority.host())).ok()
        }
        _ => HeaderValue::from_str(authority.host()).ok(),
    }
}

/// Returns the URL in the form for a request to the server itself.
fn origin_form(address: &Uri) -> Uri {
    let path = address.path_and_query().cloned();
    path.unwrap_or_else(|| PathAndQuery::from_static("/"))
        .into()
}
