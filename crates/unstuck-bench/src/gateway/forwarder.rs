//! The baseline: a plain forwarder built with the same libraries.
#![expect(
    clippy::disallowed_methods,
    reason = "the benchmark's own temporary directory"
)]

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

type ForwardClient = Client<HttpConnector, Incoming>;

/// Forwards until it is killed; the arguments are the upstream and the file for the port.
pub(crate) fn run_forwarder() -> Result<()> {
    let mut arguments = std::env::args().skip(2);
    let mut next = || arguments.next().context("too few arguments");
    let (upstream, port_file) = (next()?, next()?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(forward(upstream.parse()?, Path::new(&port_file)))
}

async fn forward(upstream: SocketAddr, port_file: &Path) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let beside = port_file.with_extension("new");
    std::fs::write(&beside, listener.local_addr()?.port().to_string())?;
    std::fs::rename(beside, port_file)?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let sender: ForwardClient = Client::builder(TokioExecutor::new()).build(connector);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let sender = sender.clone();
        tokio::spawn(async move {
            let service =
                service_fn(move |request| forward_request(sender.clone(), upstream, request));
            // Connection errors are the client's business.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn forward_request(
    sender: ForwardClient,
    upstream: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let address = format!("http://{upstream}{path}");
    if let Ok(uri) = address.parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    sender.request(request).await
}
