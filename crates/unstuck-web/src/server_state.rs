//! The shared state of the API and the pages.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::{Semaphore, broadcast, watch};
use unstuck_core::Timestamp;
use unstuck_core::redact::Redactor;
use unstuck_run::clock::Clock;
use unstuck_store::Store;

use crate::auth::{
    LoginStore, PermissionScope, RandomnessError, RateLimiter, RejectedTokenCounter,
    RejectedTokenReport, TokenStore, WebRequestRateLimits,
};
use crate::commands::Deeds;
use crate::event_json_cache::EventJsonCache;
use crate::model::ProblemDetails;
use crate::response_redaction::AlreadyRedacted;

/// Maximum number of concurrent event streams.
const MAX_STREAMS: usize = 1000;

/// The options and services that a server is built from.
pub struct WebOptions {
    /// Store of all runs.
    pub store: Store,
    /// Commands that the surrounding program runs.
    pub deeds: Arc<dyn Deeds>,
    /// Tokens and their scopes.
    pub tokens: Arc<TokenStore>,
    /// Redacts secrets in all responses.
    pub redactor: Arc<Redactor>,
    /// Clock.
    pub clock: Clock,
    /// Listen address.
    pub listen: SocketAddr,
    /// Accepted host names, in addition to addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Rate limits.
    pub rates: WebRequestRateLimits,
    /// Version of the program.
    pub version: String,
}

/// The shared state of the API and the pages.
pub struct WebState {
    pub(crate) store: Store,
    pub(crate) deeds: Arc<dyn Deeds>,
    pub(crate) tokens: Arc<TokenStore>,
    pub(crate) logins: LoginStore,
    pub(crate) rates: RateLimiter,
    pub(crate) rejected: RejectedTokenCounter,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) hosts: Vec<String>,
    pub(crate) version: String,
    pub(crate) since: Timestamp,
    pub(crate) event_encoder: EventJsonCache,
    /// Limits the number of event streams.
    pub(crate) stream_slots: Arc<Semaphore>,
    shutdown: watch::Sender<bool>,
    clock: Clock,
    listen: SocketAddr,
}

/// Returns a link to the dashboard of the server at this address that logs in with a code.
pub fn login_link(listen: SocketAddr, code: &str) -> String {
    // Browsers do not send the fragment after `#` to the server, so it appears in no log.
    format!("http://{}/login#{code}", reachable_address(listen))
}

/// Returns the address at which a local client reaches the server.
fn reachable_address(listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() {
        SocketAddr::from(([127, 0, 0, 1], listen.port()))
    } else {
        listen
    }
}

impl WebState {
    /// Creates the state of a server.
    pub fn new(options: WebOptions) -> Arc<Self> {
        Arc::new(Self {
            store: options.store,
            deeds: options.deeds,
            logins: LoginStore::open_file(
                options.tokens.path().with_file_name("logins.jsonl"),
                options.clock.timestamp(),
            ),
            tokens: options.tokens,
            rates: RateLimiter::new(options.rates),
            rejected: RejectedTokenCounter::default(),
            redactor: options.redactor,
            hosts: options.hosts,
            version: options.version,
            since: options.clock.timestamp(),
            event_encoder: EventJsonCache::default(),
            stream_slots: Arc::new(Semaphore::new(MAX_STREAMS)),
            shutdown: watch::Sender::new(false),
            clock: options.clock,
            listen: options.listen,
        })
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.timestamp()
    }

    /// Returns the store of all runs.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the commands of the surrounding program.
    pub fn deeds(&self) -> &dyn Deeds {
        &*self.deeds
    }

    /// Creates a dashboard link that logs in once, within a short time.
    pub fn create_login_link(&self, scope: PermissionScope) -> Result<String, RandomnessError> {
        let code = self.logins.create_code(scope, self.now())?;
        Ok(login_link(self.listen, &code))
    }

    /// Returns the address at which a local client reaches this server.
    pub(crate) fn address(&self) -> SocketAddr {
        reachable_address(self.listen)
    }

    /// Subscribes to reports of rejected tokens: the first, tenth, hundredth and so on of an address.
    pub fn rejected_tokens(&self) -> broadcast::Receiver<RejectedTokenReport> {
        self.rejected.subscribe()
    }

    /// Closes all streams, so that a stopping server does not wait for them.
    pub fn close_streams(&self) {
        self.shutdown.send_replace(true);
    }

    /// Waits until the server stops.
    pub(crate) fn wait_for_close(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut closing = self.shutdown.subscribe();
        async move {
            // This cannot fail while the sender exists.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }

    /// Returns the name of the login cookie: servers on other ports have their own.
    pub(crate) fn cookie_name(&self) -> String {
        format!("unstuck_{}", self.listen.port())
    }

    /// Serializes a value as a JSON response without secrets.
    pub(crate) fn json_response(&self, value: &impl Serialize) -> Result<Response, ProblemDetails> {
        let mut value = serde_json::to_value(value).map_err(|error| {
            ProblemDetails::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                format!("cannot serialize the response: {error}"),
            )
        })?;
        self.redactor.redact_value(&mut value);
        let mut response = Json(value).into_response();
        response.extensions_mut().insert(AlreadyRedacted);
        Ok(response)
    }
}
