//! HTTP proxies through which the gateway reaches its upstreams, and the connections with or without one.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::error::{GatewayError, with_causes};
use crate::settings::ProxyAndCertificateSettings;

/// The rules for reaching upstreams through a proxy.
pub(super) struct ProxyRules(Matcher);

impl ProxyRules {
    /// Builds the rules from the settings; an unsupported proxy is an error.
    pub(super) fn new(network: &ProxyAndCertificateSettings) -> Result<Self, GatewayError> {
        let named = [&network.http_proxy, &network.https_proxy];
        for proxy in named.into_iter().flatten() {
            check_proxy(proxy)?;
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let matcher = Matcher::builder()
            .http(text(&network.http_proxy))
            .https(text(&network.https_proxy))
            .no(network.no_proxy.clone())
            .build();
        Ok(Self(matcher))
    }

    /// Returns the proxy for a URL; this machine is always reached directly.
    fn proxy_for(&self, target: &Uri) -> Option<Intercept> {
        if target.host().is_none_or(is_loopback) {
            None
        } else {
            self.0.intercept(target)
        }
    }

    /// Returns the credentials for a proxy that reads the requests (no tunnel).
    pub(super) fn proxy_authorization(&self, target: &Uri) -> Option<HeaderValue> {
        match target.scheme_str() {
            Some("http") => self.proxy_for(target)?.basic_auth().cloned(),
            _ => None,
        }
    }
}

/// Checks that a proxy is supported.
fn check_proxy(proxy: &str) -> Result<(), GatewayError> {
    // The part before an `@` is a secret.
    let shown = proxy.rsplit('@').next().unwrap_or_default().to_owned();
    let wrong = |why| Err(GatewayError::Proxy { proxy: shown, why });
    let Ok(uri) = proxy.parse::<Uri>() else {
        return wrong("not a valid URL");
    };
    match uri.scheme_str() {
        None | Some("http" | "socks5" | "socks5h") if uri.host().is_some() => Ok(()),
        Some("https") => wrong("TLS connections to proxies are not supported"),
        Some("socks4" | "socks4a") => wrong("SOCKS 4 is not supported; use SOCKS 5"),
        _ => wrong("must be http://HOST:PORT or socks5://HOST:PORT"),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: IpAddr| address.is_loopback();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
}

/// Connects directly, or through the proxy for the URL.
#[derive(Clone)]
pub(super) struct ProxyConnector {
    http: HttpConnector,
    proxies: Arc<ProxyRules>,
}

impl ProxyConnector {
    pub(super) fn new(http: HttpConnector, proxies: Arc<ProxyRules>) -> Self {
        Self { http, proxies }
    }
}

type ConnectFuture = dyn Future<Output = Result<UpstreamTcpStream, io::Error>> + Send;

impl Service<Uri> for ProxyConnector {
    type Response = UpstreamTcpStream;
    type Error = io::Error;
    type Future = Pin<Box<ConnectFuture>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let http = self.http.clone();
        let proxy = self.proxies.proxy_for(&target);
        Box::pin(async move {
            match proxy {
                None => connect_direct(http, target).await,
                Some(proxy) => connect_through(http, &proxy, target).await,
            }
        })
    }
}

async fn connect_direct(mut http: HttpConnector, target: Uri) -> io::Result<UpstreamTcpStream> {
    let stream = http.call(target).await.map_err(io::Error::other)?;
    Ok(UpstreamTcpStream::new(stream))
}

async fn connect_through(
    mut http: HttpConnector,
    proxy: &Intercept,
    target: Uri,
) -> io::Result<UpstreamTcpStream> {
    let is_socks = matches!(proxy.uri().scheme_str(), Some("socks5" | "socks5h"));
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        // Its name is enough; it may contain a password.
        let name = proxy
            .uri()
            .authority()
            .map_or("", |authority| authority.as_str());
        io::Error::other(format!("the proxy {name}: {}", with_causes(&*error)))
    };
    if is_socks {
        let mut socks = SocksV5::new(proxy.uri().clone(), http);
        if let Some((user, password)) = proxy.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        let stream = socks
            .call(target)
            .await
            .map_err(|error| failed(error.into()))?;
        return Ok(UpstreamTcpStream::new(stream));
    }
    if target.scheme_str() == Some("http") {
        let stream = http.call(proxy.uri().clone()).await;
        let stream = stream.map_err(|error| failed(error.into()))?;
        return Ok(UpstreamTcpStream {
            stream,
            is_proxied: true,
        });
    }
    let mut tunnel = Tunnel::new(proxy.uri().clone(), http);
    if let Some(auth) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(auth.clone());
    }
    let stream = tunnel
        .call(target)
        .await
        .map_err(|error| failed(error.into()))?;
    Ok(UpstreamTcpStream::new(stream))
}

/// A TCP connection to an upstream, direct or through a proxy.
pub(super) struct UpstreamTcpStream {
    stream: TokioIo<TcpStream>,
    /// True if requests name the absolute URL, since a proxy reads them.
    is_proxied: bool,
}

impl UpstreamTcpStream {
    fn new(stream: TokioIo<TcpStream>) -> Self {
        Self {
            stream,
            is_proxied: false,
        }
    }
}

impl Connection for UpstreamTcpStream {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_proxied)
    }
}

impl Read for UpstreamTcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl Write for UpstreamTcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }
}
