//! Sends requests to upstreams, over connections that are kept.

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

use super::arriving::Arriving;
use super::body::Outgoing;
use super::connect::{Https, Stream, https};
use super::line::Line;
use super::pool::{Place, Pool, Trunk};
use super::proxy::Proxies;
use crate::error::GatewayError;
use crate::settings::Network;

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the address has no host")]
    NoHost,
    #[error("cannot connect")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    #[error(transparent)]
    Lost(#[from] hyper::Error),
}

/// Sends requests to upstreams.
#[derive(Clone)]
pub(crate) struct Sender {
    https: Https,
    proxies: Arc<Proxies>,
    pool: Arc<Pool>,
}

/// A new connection, as it was agreed upon.
enum Connected {
    Line(Line),
    Trunk(Trunk),
}

impl Sender {
    /// Connects within that time, or not at all.
    pub(crate) fn new(connect: Duration, network: &Network) -> Result<Self, GatewayError> {
        let proxies = Arc::new(Proxies::new(network)?);
        Ok(Self {
            https: https(connect, network, Arc::clone(&proxies))?,
            proxies,
            pool: Arc::default(),
        })
    }

    /// Sends a request, and waits for the head of its answer.
    pub(crate) async fn request(
        &self,
        mut request: Request<Outgoing>,
    ) -> Result<Response<Arriving>, SendError> {
        let place = place(request.uri()).ok_or(SendError::NoHost)?;
        if let Some(word) = self.proxies.word_in(request.uri()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, word);
        }
        if let Some(trunk) = self.pool.trunk(&place) {
            match by_trunk(trunk, request).await {
                Ok(response) => return Ok(response),
                // The other side closed it in the same moment.
                Err((_, Some(unsent))) => request = unsent,
                Err((lost, None)) => return Err(lost),
            }
        }
        while let Some(line) = self.pool.line(&place) {
            match self.by_line(line, &place, request).await {
                Ok(response) => return Ok(response),
                Err((_, Some(unsent))) => request = unsent,
                Err((lost, None)) => return Err(lost),
            }
        }
        // It is rare and large, and every call would carry the room for it along.
        let connecting = Box::pin(self.connect(&place, request.uri().clone()));
        let sent = match connecting.await? {
            Connected::Line(line) => self.by_line(line, &place, request).await,
            Connected::Trunk(trunk) => by_trunk(trunk, request).await,
        };
        sent.map_err(|(lost, _)| lost)
    }

    async fn connect(&self, place: &Place, address: Uri) -> Result<Connected, SendError> {
        let stream: Stream = self
            .https
            .clone()
            .call(address)
            .await
            .map_err(SendError::Connect)?;
        if !stream.connected().is_negotiated_h2() {
            return Ok(Connected::Line(Line::open(stream).await?));
        }
        let (trunk, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .handshake(stream)
            .await?;
        // How it ends is told by the answers that it was to bring.
        tokio::spawn(async {
            let _ = connection.await;
        });
        self.pool.keep_trunk(place.clone(), trunk.clone());
        Ok(Connected::Trunk(trunk))
    }

    async fn by_line(
        &self,
        mut line: Line,
        place: &Place,
        mut request: Request<Outgoing>,
    ) -> Result<Response<Arriving>, (SendError, Option<Request<Outgoing>>)> {
        let whole = request.uri().clone();
        if let Some(host) = host(place) {
            request.headers_mut().entry(HOST).or_insert(host);
        }
        if !line.is_proxied() {
            *request.uri_mut() = of_origin(&whole);
        }
        match line.send(request).await {
            Ok(response) => Ok(response
                .map(|body| Arriving::by_line(body, line, place.clone(), Arc::clone(&self.pool)))),
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

async fn by_trunk(
    mut trunk: Trunk,
    request: Request<Outgoing>,
) -> Result<Response<Arriving>, (SendError, Option<Request<Outgoing>>)> {
    match trunk.try_send_request(request).await {
        Ok(response) => Ok(response.map(Arriving::by_trunk)),
        Err(mut lost) => {
            let unsent = lost.take_message();
            Err((lost.into_error().into(), unsent))
        }
    }
}

fn place(address: &Uri) -> Option<Place> {
    let scheme = address.scheme().cloned().unwrap_or(Scheme::HTTP);
    Some((scheme, address.authority()?.clone()))
}

/// The host as a request names it: without the port that goes without saying.
fn host((scheme, authority): &(Scheme, Authority)) -> Option<HeaderValue> {
    let usual = match scheme == &Scheme::HTTPS {
        true => 443,
        false => 80,
    };
    match authority.port_u16() {
        Some(port) if port != usual => {
            HeaderValue::from_str(&format!("{}:{port}", authority.host())).ok()
        }
        _ => HeaderValue::from_str(authority.host()).ok(),
    }
}

/// The address as it stands in a request to the server itself.
fn of_origin(address: &Uri) -> Uri {
    let path = address.path_and_query().cloned();
    path.unwrap_or_else(|| PathAndQuery::from_static("/"))
        .into()
}
