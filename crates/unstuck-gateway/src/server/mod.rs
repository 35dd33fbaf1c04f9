//! The server: accepts connections and dispatches requests.

mod access_control;
mod contained_url_path;
mod handler;
mod passthrough;
mod route;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use unstuck_network::PeerOwner;

use crate::client_response_body::ResponseBody;
use crate::coalescing_waker::CoalescingWaker;
use crate::error::GatewayError;
use crate::non_llm_request_handler::ConnectionPeer;
use crate::state::GatewayState;

/// The time for calls in progress to end.
const GRACE: Duration = Duration::from_secs(5);
/// The time for clients to receive the error after a cut-off.
const CUT_OFF_GRACE: Duration = Duration::from_millis(500);
/// The retry interval while the HTTP/2 preface is incomplete.
const PREFACE_RETRY: Duration = Duration::from_millis(5);
/// The pause after a failed accept, such as with too many open files.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The way the server stops, if it does: gracefully or immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopMode {
    No,
    /// Stops when the calls in progress have ended or the grace period is over.
    Graceful,
    Immediate,
}

/// Starts to listen.
pub(crate) async fn start(
    shared: Arc<GatewayState>,
    stop: watch::Receiver<StopMode>,
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

async fn serve(
    listener: TcpListener,
    shared: Arc<GatewayState>,
    mut stop: watch::Receiver<StopMode>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stop.changed() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    let stream = (stream, from);
                    connections.spawn(serve_connection(stream, Arc::clone(&shared), stop.clone()));
                }
                Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    tokio::select! {
        () = join_all(&mut connections) => {}
        () = tokio::time::sleep(GRACE) => {}
        _ = stop.wait_for(|stop| *stop == StopMode::Immediate) => {}
    }
    shared.shutdown.cut_off();
    // Calls that have not ended by then are dropped with their task, and recorded on drop.
    let _ = tokio::time::timeout(CUT_OFF_GRACE, join_all(&mut connections)).await;
    connections.shutdown().await;
}

async fn join_all(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

async fn serve_connection(
    (stream, from): (TcpStream, SocketAddr),
    shared: Arc<GatewayState>,
    stop: watch::Receiver<StopMode>,
) {
    // Without it small pieces of a stream wait for each other.
    let _ = stream.set_nodelay(true);
    let Some(from) = identify_peer(&stream, from) else {
        return;
    };
    let limit = shared.settings.limits.request;
    let Ok(is_http2) = tokio::time::timeout(limit, speaks_http2(&stream)).await else {
        return;
    };
    let stream = TokioIo::new(stream);
    let service = service_fn(move |request| handle_request(Arc::clone(&shared), request, from));
    if is_http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(1024)
            .serve_connection(stream, service);
        drive_until_stopped(connection, stop, |connection| {
            connection.graceful_shutdown();
        })
        .await;
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limit)
            .serve_connection(stream, service);
        drive_until_stopped(connection, stop, |connection| {
            connection.graceful_shutdown();
        })
        .await;
    }
}

/// Identifies the peer once per connection, before anything is read; `None` if it is gone.
fn identify_peer(stream: &TcpStream, address: SocketAddr) -> Option<ConnectionPeer> {
    let owner = match stream.local_addr() {
        Ok(local) => PeerOwner::lookup(local, address),
        Err(_) => PeerOwner::Unknown,
    };
    // Once a connection is closed, another process may get its address. Data sent before must not pass for its own.
    matches!(stream.take_error(), Ok(None)).then_some(ConnectionPeer { address, owner })
}

/// Returns true if the client starts with the HTTP/2 preface. Nothing is consumed from the stream.
async fn speaks_http2(stream: &TcpStream) -> bool {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut begun = [0; PREFACE.len()];
    loop {
        let Ok(length @ 1..) = stream.peek(&mut begun).await else {
            return false;
        };
        let begun = begun.get(..length).unwrap_or_default();
        if !PREFACE.starts_with(begun) {
            return false;
        }
        if begun.len() == PREFACE.len() {
            return true;
        }
        // `POST` begins with the same letter; the rest is on its way.
        tokio::time::sleep(PREFACE_RETRY).await;
    }
}

/// Drives a connection to its end, or asks it to shut down on stop. Errors are left to its client.
async fn drive_until_stopped<C: Future>(
    connection: C,
    stop: watch::Receiver<StopMode>,
    shut: impl FnOnce(Pin<&mut C>),
) {
    let mut connection = pin!(connection);
    let mut told = stop.clone();
    let mut stopped = pin!(told.changed());
    let mut listens = false;
    let quiet: Arc<CoalescingWaker> = Arc::default();
    let is_over = poll_fn(|context| {
        let polled = quiet.poll(context, |context| connection.as_mut().poll(context));
        if polled.is_ready() {
            return Poll::Ready(true);
        }
        // All connections share the listener list, so it is not touched with every piece of a stream: a task keeps the
        // same waker all its life.
        let is_news = !listens || stop.has_changed().unwrap_or(true);
        listens = true;
        if is_news && stopped.as_mut().poll(context).is_ready() {
            Poll::Ready(false)
        } else {
            Poll::Pending
        }
    })
    .await;
    if !is_over {
        shut(connection.as_mut());
        let _ = connection.await;
    }
}

async fn handle_request(
    shared: Arc<GatewayState>,
    mut request: Request<Incoming>,
    from: ConnectionPeer,
) -> Result<Response<ResponseBody>, Infallible> {
    if let Some(elsewhere) = &shared.settings.fallback
        && !route::is_gateway_path(request.uri().path())
    {
        let answer = elsewhere.handle(request, from).await;
        return Ok(answer.map(ResponseBody::Fallback));
    }
    if let Err(refused) = access_control::admit(&shared, &mut request, from) {
        return Ok(*refused);
    }
    Ok(handler::handle(shared, request).await)
}
