//! A server on a real socket, a store with a history, and a client.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use unstuck_core::redact::Redactor;
use unstuck_network::PeerOwner;
use unstuck_run::clock::Clock;
use unstuck_store::{Store, StoreLocation, StoreOptions};
use unstuck_web::auth::{PermissionScope, TokenStore, WebRequestRateLimits};
use unstuck_web::{WebOptions, WebState, router};

use crate::doer::Doer;
use crate::samples;

/// A value that the server knows as a secret.
pub(crate) const SECRET: &str = "correct-horse-battery";

/// A server with its environment.
pub(crate) struct Ground {
    pub(crate) web: Arc<WebState>,
    pub(crate) store: Store,
    pub(crate) doer: Arc<Doer>,
    pub(crate) address: SocketAddr,
    tokens: Arc<TokenStore>,
    client: Client<HttpConnector, Full<Bytes>>,
    serving: JoinHandle<()>,
    _folder: TempDir,
}

/// The response that a client received.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

impl Ground {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts a server with changed options.
    pub(crate) async fn with(change: impl FnOnce(&mut WebOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("unstuck.db")).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let doer = Arc::new(Doer::new(store.clone(), || samples::later(100)));
        let tokens = Arc::new(TokenStore::open(folder.path().join("tokens.jsonl")));
        let mut options = WebOptions {
            store: store.clone(),
            deeds: Arc::clone(&doer) as _,
            tokens: Arc::clone(&tokens),
            redactor: Arc::new(Redactor::new([SECRET.to_owned()])),
            clock: Clock::starting_at(samples::later(100)),
            listen: address,
            hosts: Vec::new(),
            rates: WebRequestRateLimits::default(),
            version: "0.1.0".into(),
        };
        change(&mut options);
        let web = WebState::new(options);
        let service = router(Arc::clone(&web))
            .layer(Extension(PeerOwner::SameUser))
            .into_make_service_with_connect_info::<SocketAddr>();
        let serving = tokio::spawn(async move {
            axum::serve(listener, service).await.unwrap();
        });
        Self {
            web,
            store,
            doer,
            address,
            tokens,
            client: Client::builder(TokioExecutor::new()).build(HttpConnector::new()),
            serving,
            _folder: folder,
        }
    }

    /// Starts a server with a recovered run, a blocked run and a running one.
    pub(crate) async fn filled() -> Self {
        let ground = Self::new().await;
        ground.fill().await;
        ground
    }

    pub(crate) async fn fill(&self) {
        let (one, two, three) = (samples::run(1), samples::run(2), samples::run(3));
        samples::write(&self.store, &one, samples::recovered(&one, "/home/me/shop")).await;
        samples::write(&self.store, &two, samples::asking(&two, "/home/me/shop")).await;
        samples::write(
            &self.store,
            &three,
            samples::running(&three, "/home/me/blog"),
        )
        .await;
    }

    /// Creates a token with this scope.
    pub(crate) fn token(&self, scope: PermissionScope) -> String {
        let made = self.tokens.create("test", scope, samples::START);
        made.unwrap().1
    }

    /// Revokes all tokens.
    pub(crate) fn revoke_all(&self) {
        for token in self.tokens.list().unwrap() {
            self.tokens.revoke(&token.id, samples::START).unwrap();
        }
    }

    /// Creates a request without credentials.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Asking<'_> {
        self.ask_url(method, &format!("http://{}{path}", self.address))
    }

    /// Creates a request to another server.
    pub(crate) fn ask_url(&self, method: &str, url: &str) -> Asking<'_> {
        Asking {
            ground: self,
            request: Request::builder().method(method).uri(url),
            body: Bytes::new(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path).send().await
    }

    /// Returns the JSON at a path.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let reply = self.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json()
    }

    /// Posts JSON with a token of this scope.
    pub(crate) async fn post(&self, scope: PermissionScope, path: &str, body: Value) -> Reply {
        let token = self.token(scope);
        self.ask("POST", path)
            .token(&token)
            .json(&body)
            .send()
            .await
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A request under construction.
pub(crate) struct Asking<'a> {
    ground: &'a Ground,
    request: hyper::http::request::Builder,
    body: Bytes,
}

impl Asking<'_> {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.text("application/json", &body.to_string())
    }

    pub(crate) fn text(mut self, media_type: &str, body: &str) -> Self {
        self.body = Bytes::copy_from_slice(body.as_bytes());
        self.header("content-type", media_type)
    }

    pub(crate) async fn send(self) -> Reply {
        let response = self.begin().await;
        let (parts, body) = response.into_parts();
        let body = tokio::time::timeout(Duration::from_secs(20), body.collect());
        let body = body.await.expect("the answer ends").unwrap().to_bytes();
        Reply {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Sends the request and returns the response without reading its body, which may be endless.
    pub(crate) async fn begin(self) -> Response<Incoming> {
        let request = self.request.body(Full::new(self.body)).unwrap();
        self.ground.client.request(request).await.unwrap()
    }
}

/// Opens a store in a file.
pub(crate) async fn open(path: &Path) -> Store {
    let location = StoreLocation::file(path);
    Store::open(&location, StoreOptions::default())
        .await
        .unwrap()
}
