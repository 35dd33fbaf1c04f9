//! The server: it listens on the loopback interface and plays a script to whoever calls.
//!
//! It lives in a thread with a runtime of its own, so that it works the same in plain and in async tests, and
//! goes on working while a test's clock is paused.

mod body;
mod respond;
mod seen;

pub use seen::Request;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use self::seen::Seen;
use crate::error::FaultsError;
use crate::script::{Cursor, Script};

/// A running LLM API that fails as its script says; it stops when it is dropped.
#[derive(Debug)]
pub struct FaultServer {
    address: SocketAddr,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Where a server listens and what it leaves behind.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The port on 127.0.0.1; any free one if it is 0.
    pub port: u16,
    /// A file to which every request is added as a line of JSON.
    pub log: Option<PathBuf>,
}

const BEFORE_NEXT_ACCEPT: Duration = Duration::from_millis(50);

/// What all connections share.
#[derive(Debug)]
struct State {
    cursor: Mutex<Cursor>,
    seen: Mutex<Seen>,
}

impl FaultServer {
    /// Starts a server on a free port.
    pub fn start(script: Script) -> Result<Self, FaultsError> {
        Self::start_with(script, &Options::default())
    }

    /// Starts a server.
    pub fn start_with(script: Script, options: &Options) -> Result<Self, FaultsError> {
        let seen = Seen::new(options.log.as_deref())?;
        let state = Arc::new(State {
            cursor: Mutex::new(Cursor::new(script)),
            seen: Mutex::new(seen),
        });
        let (listener, address) = listen(options.port).map_err(FaultsError::Start)?;
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

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What came in so far, oldest first; only the last thousand requests are kept.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.state.seen).all()
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(port: u16) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn serve(
    runtime: &Runtime,
    listener: TcpListener,
    state: &Arc<State>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        tokio::select! {
            () = accept(listener, state) => {}
            _ = stopped => {}
        }
    });
}

async fn accept(listener: TcpListener, state: &Arc<State>) {
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
                        // Without it small frames may be held back for 40 ms; and if it fails, that is all.
                        let _ = stream.set_nodelay(true);
                        connections.spawn(converse(TokioIo::new(stream), Arc::clone(state)));
                    }
                    // Out of file handles, most likely: some may be free soon.
                    Err(_) => tokio::time::sleep(BEFORE_NEXT_ACCEPT).await,
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: TokioIo<tokio::net::TcpStream>, state: Arc<State>) {
    let service = service_fn(move |request| respond::respond(Arc::clone(&state), request));
    // A client that goes away in the middle is no concern of the server's.
    let _ = http1::Builder::new()
        .serve_connection(stream, service)
        .await;
}
