//! The server: it listens on the loopback interface and plays a script to whoever calls.
//!
//! It lives in a thread with a runtime of its own, so that it works the same in plain and in async tests, and
//! goes on working while a test's clock is paused.

mod answer;
mod body;
mod broken_responses;
mod capacity;
mod capacity_schedule;
mod connection;
mod echo;
mod in_flight;
mod key_limits;
mod raw_connection;
mod request_log;
mod respond;
mod state;
mod stats;
mod tls;

pub use request_log::RequestRecord;
pub use stats::ServerStats;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use self::request_log::RequestLog;
use self::state::ServerState;
use crate::error::FaultsError;
use crate::script::Script;

/// A running LLM API that fails as its script says; it stops when it is dropped.
#[derive(Debug)]
pub struct FaultServer {
    address: SocketAddr,
    state: Arc<ServerState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Where a server listens and what it leaves behind.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// The port on 127.0.0.1; any free one if it is 0.
    pub port: u16,
    /// Another address to listen on, in the place of 127.0.0.1 and the port.
    pub listen: Option<SocketAddr>,
    /// A file to which every request is added as a line of JSON.
    pub log: Option<PathBuf>,
}

const BEFORE_NEXT_ACCEPT: Duration = Duration::from_millis(50);

impl FaultServer {
    /// Starts a server on a free port.
    pub fn start(script: Script) -> Result<Self, FaultsError> {
        Self::start_with(script, &ServerOptions::default())
    }

    /// Starts a server.
    pub fn start_with(script: Script, options: &ServerOptions) -> Result<Self, FaultsError> {
        let seen = RequestLog::new(options.log.as_deref())?;
        let state = Arc::new(ServerState::new(script, seen)?);
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let (listener, address) =
            bind(options.listen.unwrap_or(local)).map_err(FaultsError::Start)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(FaultsError::Start)?;
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("unstuck-faults".into())
            .spawn(move || serve(&runtime, listener, &shared, stopped))
            .map_err(FaultsError::Start)?;
        Ok(Self {
            address,
            state,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The address without a slash at the end, such as `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address for clients that speak TLS; `None` if the script has no `[tls]`.
    pub fn tls_url(&self) -> Option<String> {
        let address = self.address;
        let secured = self.state.tls.as_ref();
        secured.map(|_| format!("https://{address}"))
    }

    /// The certificate as PEM, for clients that shall trust it; `None` if the script has no `[tls]`.
    pub fn certificate(&self) -> Option<&str> {
        self.state.tls.as_ref().map(tls::TlsState::pem)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What came in so far, oldest first; only the last thousand requests are kept.
    pub fn requests(&self) -> Vec<RequestRecord> {
        lock(&self.state.request_log).all()
    }

    /// What was counted so far.
    pub fn stats(&self) -> ServerStats {
        lock(&self.state.tally).stats()
    }

    /// Begins the script anew, with nothing counted and nothing kept.
    pub fn restart(&self) {
        self.state.restart();
    }

    /// Stops listening and breaks every connection that is still open.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has stopped as well.
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn serve(
    runtime: &Runtime,
    listener: TcpListener,
    state: &Arc<ServerState>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        tokio::select! {
            () = accept(listener, state) => {}
            _ = stopped => {}
        }
    });
}

async fn accept(listener: TcpListener, state: &Arc<ServerState>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    // Dropping the set ends the connections that are left.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                match accepted {
                    Ok((stream, _)) => {
                        lock(&state.tally).count_connection();
                        connections.spawn(connection::serve(stream, Arc::clone(state)));
                    }
                    // Out of file handles, most likely: some may be free soon.
                    Err(_) => tokio::time::sleep(BEFORE_NEXT_ACCEPT).await,
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
