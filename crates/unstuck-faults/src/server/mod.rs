//! The server: listens on the loopback interface and plays a script to its clients.
//!
//! It runs in its own thread with its own runtime, so that it works the same in plain and in async tests, and keeps
//! running while a test's clock is paused.

mod broken_responses;
mod capacity;
mod capacity_schedule;
mod connection;
mod echo;
mod in_flight;
mod key_limits;
mod paced_body;
mod raw_connection;
mod request_handler;
mod request_log;
mod response_builder;
mod state;
mod stats;
mod tls;

pub use request_log::FaultServerRequestRecord;
pub use stats::FaultServerStats;

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
use crate::error::FaultServerError;
use crate::script::FaultScript;

/// A running LLM API that fails as its script says; stops on drop.
#[derive(Debug)]
pub struct FaultServer {
    address: SocketAddr,
    state: Arc<ServerState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Address and log options of a server.
#[derive(Debug, Clone, Default)]
pub struct FaultServerOptions {
    /// Port on 127.0.0.1; 0 for any free one.
    pub port: u16,
    /// Address to listen on, instead of 127.0.0.1 and the port.
    pub listen: Option<SocketAddr>,
    /// Log file to which every request is added as a line of JSON.
    pub log: Option<PathBuf>,
}

const BEFORE_NEXT_ACCEPT: Duration = Duration::from_millis(50);

impl FaultServer {
    /// Starts a server on a free port.
    pub fn start(script: FaultScript) -> Result<Self, FaultServerError> {
        Self::start_with(script, &FaultServerOptions::default())
    }

    /// Starts a server.
    pub fn start_with(
        script: FaultScript,
        options: &FaultServerOptions,
    ) -> Result<Self, FaultServerError> {
        let seen = RequestLog::new(options.log.as_deref())?;
        let state = Arc::new(ServerState::new(script, seen)?);
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let (listener, address) =
            bind(options.listen.unwrap_or(local)).map_err(FaultServerError::Start)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(FaultServerError::Start)?;
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("unstuck-faults".into())
            .spawn(move || serve(&runtime, listener, &shared, stopped))
            .map_err(FaultServerError::Start)?;
        Ok(Self {
            address,
            state,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the URL without a trailing slash, such as `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the URL for TLS clients, or `None` if the script has no `[tls]`.
    pub fn tls_url(&self) -> Option<String> {
        let address = self.address;
        let secured = self.state.tls.as_ref();
        secured.map(|_| format!("https://{address}"))
    }

    /// Returns the certificate as PEM for clients to trust, or `None` if the script has no `[tls]`.
    pub fn certificate(&self) -> Option<&str> {
        self.state.tls.as_ref().map(tls::TlsState::pem)
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the requests so far, oldest first; only the last thousand are kept.
    pub fn requests(&self) -> Vec<FaultServerRequestRecord> {
        lock(&self.state.request_log).all()
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> FaultServerStats {
        lock(&self.state.tally).stats()
    }

    /// Restarts the script, and clears all counts and requests.
    pub fn restart(&self) {
        self.state.restart();
    }

    /// Stops listening and closes all open connections.
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
    // Dropping the set ends the remaining connections.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                match accepted {
                    Ok((stream, _)) => {
                        lock(&state.tally).count_connection();
                        connections.spawn(connection::serve(stream, Arc::clone(state)));
                    }
                    // Most likely out of file descriptors: some may be free soon.
                    Err(_) => tokio::time::sleep(BEFORE_NEXT_ACCEPT).await,
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
