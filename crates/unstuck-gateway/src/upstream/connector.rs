//! Connections to upstreams: TLS, HTTP/1.1 and 2.

use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;

use super::outbound_proxy::{ProxyConnector, ProxyRules, UpstreamTcpStream};
use super::trust_roots;
use crate::error::GatewayError;
use crate::settings::ProxyAndCertificateSettings;

/// The connector for upstreams.
pub(super) type TlsConnector = HttpsConnector<ProxyConnector>;

/// A connection to an upstream.
pub(super) type UpstreamStream = MaybeHttpsStream<UpstreamTcpStream>;

/// Builds the connector with the given connect timeout.
pub(super) fn https(
    connect: Duration,
    network: &ProxyAndCertificateSettings,
    proxies: Arc<ProxyRules>,
) -> Result<TlsConnector, GatewayError> {
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    http.enforce_http(false);
    http.set_connect_timeout(Some(connect));
    http.set_keepalive(Some(Duration::from_secs(60)));
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(trust_roots::tls_config(network)?)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(ProxyConnector::new(http, proxies)))
}
