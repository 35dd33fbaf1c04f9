//! A real local server that records requests and answers as configured.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The content of one request.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// The response to a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Status(u16),
    With(u16, &'static str, String),
    /// A response of this many bytes.
    Long(usize),
    Never,
}

#[derive(Default)]
struct Notes {
    got: Vec<Got>,
    replies: VecDeque<Reply>,
}

/// The server; it responds with 200 by default, and stops when dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    notes: Arc<Mutex<Notes>>,
    task: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), replies).await
    }

    pub(crate) async fn at(at: SocketAddr, replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let notes = Arc::new(Mutex::new(Notes {
            got: Vec::new(),
            replies: replies.into_iter().collect(),
        }));
        let task = tokio::spawn(serve(listener, Arc::clone(&notes)));
        Self {
            address,
            notes,
            task,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.notes.lock().unwrap().got.clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, notes: Arc<Mutex<Notes>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let notes = Arc::clone(&notes);
        tokio::spawn(async move {
            let answer = service_fn(move |request| answer(request, Arc::clone(&notes)));
            let connection = hyper::server::conn::http1::Builder::new();
            // The client may disconnect at any time.
            let _ = connection
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    notes: Arc<Mutex<Notes>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let reply = {
        let mut notes = notes.lock().unwrap();
        notes.got.push(Got {
            path: parts.uri.path().to_owned(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        });
        notes.replies.pop_front().unwrap_or(Reply::Status(200))
    };
    let response = Response::builder();
    Ok(match reply {
        Reply::Status(status) => response.status(status).body(Full::from("so it is")),
        Reply::With(status, name, value) => response
            .status(status)
            .header(name, value)
            .body(Full::from("")),
        Reply::Long(bytes) => response.status(200).body(Full::from("x".repeat(bytes))),
        Reply::Never => std::future::pending().await,
    }
    .unwrap())
}
