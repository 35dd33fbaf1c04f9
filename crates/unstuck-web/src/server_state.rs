//! What the API and the pages work with.

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
    LoginStore, RandomnessError, RateLimiter, RateLimits, RejectedTokenCounter, RejectedTokens,
    Scope, TokenStore,
};
use crate::commands::Deeds;
use crate::event_encoder::EventEncoder;
use crate::model::ProblemDetails;
use crate::response_redaction::AlreadyRedacted;

/// So many can follow the events at once.
const MAX_STREAMS: usize = 1000;

/// What a server is made of.
pub struct WebOptions {
    /// The log of all runs.
    pub store: Store,
    /// What changes things, and what only the program around it knows.
    pub deeds: Arc<dyn Deeds>,
    /// Who may do what.
    pub tokens: Arc<TokenStore>,
    /// Takes secrets out of all that is answered.
    pub redactor: Arc<Redactor>,
    /// Where the present moment comes from.
    pub clock: Clock,
    /// Where the server listens.
    pub listen: SocketAddr,
    /// Names by which it is reached, beside addresses and `localhost`.
    pub hosts: Vec<String>,
    /// How often one address may ask.
    pub rates: RateLimits,
    /// The version of the program.
    pub version: String,
}

/// What the API and the pages work with.
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
    pub(crate) event_encoder: EventEncoder,
    /// Places for those who follow the events.
    pub(crate) stream_slots: Arc<Semaphore>,
    shutdown: watch::Sender<bool>,
    clock: Clock,
    listen: SocketAddr,
}

/// A link to the dashboard of a server that listens there, which logs in by a code.
pub fn login_link(listen: SocketAddr, code: &str) -> String {
    // What stands behind the # is not sent to the server, and so is in no log.
    format!("http://{}/login#{code}", reachable_address(listen))
}

/// Where a server that listens there is reached from this machine.
fn reachable_address(listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() {
        SocketAddr::from(([127, 0, 0, 1], listen.port()))
    } else {
        listen
    }
}

impl WebState {
    /// A server of these parts.
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
            event_encoder: EventEncoder::default(),
            stream_slots: Arc::new(Semaphore::new(MAX_STREAMS)),
            shutdown: watch::Sender::new(false),
            clock: options.clock,
            listen: options.listen,
        })
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.timestamp()
    }

    /// The log of all runs.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What changes things, and what only the program around it knows.
    pub fn deeds(&self) -> &dyn Deeds {
        &*self.deeds
    }

    /// A link to the dashboard that logs in whoever opens it, once and soon.
    pub fn create_login_link(&self, scope: Scope) -> Result<String, RandomnessError> {
        let code = self.logins.create_code(scope, self.now())?;
        Ok(login_link(self.listen, &code))
    }

    /// Where this server is reached from this machine.
    pub(crate) fn address(&self) -> SocketAddr {
        reachable_address(self.listen)
    }

    /// Hears of wrong tokens and codes: of the first of an address, the tenth, the hundredth and so on.
    pub fn rejected_tokens(&self) -> broadcast::Receiver<RejectedTokens> {
        self.rejected.subscribe()
    }

    /// Ends all streams, so that a server that stops need not wait for those who follow them.
    pub fn close_streams(&self) {
        self.shutdown.send_replace(true);
    }

    /// Waits until the server stops.
    pub(crate) fn wait_for_close(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut closing = self.shutdown.subscribe();
        async move {
            // It cannot fail while somebody could be told.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }

    /// What the cookie of a login is called: servers on other ports have their own.
    pub(crate) fn cookie_name(&self) -> String {
        format!("unstuck_{}", self.listen.port())
    }

    /// A value as JSON, without secrets.
    pub(crate) fn json_response(&self, value: &impl Serialize) -> Result<Response, ProblemDetails> {
        let mut value = serde_json::to_value(value).map_err(|error| {
            ProblemDetails::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                format!("the answer could not be written: {error}"),
            )
        })?;
        self.redactor.redact_value(&mut value);
        let mut response = Json(value).into_response();
        response.extensions_mut().insert(AlreadyRedacted);
        Ok(response)
    }
}
