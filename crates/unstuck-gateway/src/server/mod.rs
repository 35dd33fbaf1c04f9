//! Listens, and gives each request to whoever sees to it.

mod doorkeeper;
mod guarded;
mod pass;
mod route;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::answer::Answer;
use crate::error::GatewayError;
use crate::shared::Shared;

/// So long the calls under way are given to end.
const GRACE: Duration = Duration::from_secs(5);
/// So long is waited when no connection can be taken, such as when there are too many open files.
const BREATHER: Duration = Duration::from_millis(50);

/// Whether it is to end, and how soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopping {
    No,
    /// When the calls under way have ended, or have had their time.
    Gently,
    AtOnce,
}

/// Starts to listen.
pub(crate) async fn start(
    shared: Arc<Shared>,
    stop: watch::Receiver<Stopping>,
) -> Result<(SocketAddr, JoinHandle<()>), GatewayError> {
    let wanted = shared.settings.listen;
    let failed = |source| GatewayError::Listen {
        address: wanted,
        source,
    };
    let listener = TcpListener::bind(wanted).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let serving = tokio::spawn(serve(listener, shared, stop));
    Ok((address, serving))
}

async fn serve(listener: TcpListener, shared: Arc<Shared>, mut stop: watch::Receiver<Stopping>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stop.changed() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&shared), stop.clone()));
                }
                Err(_) => tokio::time::sleep(BREATHER).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        () = ended => {}
        () = tokio::time::sleep(GRACE) => {}
        _ = stop.wait_for(|stop| *stop == Stopping::AtOnce) => {}
    }
    // What has not ended by then is dropped with its task, and written down when it is.
    shared.is_over.store(true, Ordering::Relaxed);
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, mut stop: watch::Receiver<Stopping>) {
    // Without it small pieces of a stream wait for each other.
    let _ = stream.set_nodelay(true);
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.settings.limits.request);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1024);
    let service = service_fn(move |request| answered(Arc::clone(&shared), request));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // How a connection ends is its client's business.
        _ = connection.as_mut() => return,
        _ = stop.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn answered(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, Infallible> {
    if let Some(refused) = doorkeeper::refused(&shared, &request) {
        return Ok(refused);
    }
    Ok(guarded::answer(shared, request).await)
}
