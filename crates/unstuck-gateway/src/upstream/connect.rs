//! Connections to upstreams: TLS, HTTP/1.1 and 2.

use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;

use super::believed;
use super::proxy::{Connector, Link, Proxies};
use crate::error::GatewayError;
use crate::settings::Network;

/// What connects to upstreams.
pub(super) type Https = HttpsConnector<Connector>;

/// A connection to an upstream.
pub(super) type Stream = MaybeHttpsStream<Link>;

/// What connects within that time, or not at all.
pub(super) fn https(
    connect: Duration,
    network: &Network,
    proxies: Arc<Proxies>,
) -> Result<Https, GatewayError> {
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    http.enforce_http(false);
    http.set_connect_timeout(Some(connect));
    http.set_keepalive(Some(Duration::from_secs(60)));
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(believed::tls(network)?)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(Connector::new(http, proxies)))
}
