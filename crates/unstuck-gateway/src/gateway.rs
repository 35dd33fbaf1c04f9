//! The gateway as a whole: what all its calls share, and the handle by which it is steered.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use unstuck_core::decision::{Catalog, Dice, Draw};
use unstuck_core::knowledge::Playbook;
use unstuck_core::traffic::LaneState;
use unstuck_core::{Classifier, Diagnosis, Failure, Timestamp};

use crate::clock;
use crate::error::GatewayError;
use crate::lanes::Lanes;
use crate::ledger::{Crier, Ledger, Notice};
use crate::protocol::{Protocol, Said};
use crate::session::{Session, SessionSetup, Sessions};
use crate::settings::Settings;
use crate::upstream::{Sender, sender};
use crate::{server, spending::Spending};

/// What the gateway knows about failures, strategies and models.
pub trait Knows: Send + Sync {
    /// Tells what kind of failure it is.
    fn classifier(&self) -> &Classifier;

    /// Knows how to recover.
    fn playbook(&self) -> &Playbook;

    /// The models.
    fn catalog(&self) -> &Catalog;
}

/// What comes with the program.
#[derive(Debug)]
pub struct BuiltIn(Catalog);

impl Default for BuiltIn {
    fn default() -> Self {
        Self(Catalog::embedded())
    }
}

impl Knows for BuiltIn {
    fn classifier(&self) -> &Classifier {
        Classifier::built_in()
    }

    fn playbook(&self) -> &Playbook {
        Playbook::built_in()
    }

    fn catalog(&self) -> &Catalog {
        &self.0
    }
}

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) knowledge: Arc<dyn Knows>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) crier: Crier,
    pub(crate) lanes: Lanes,
    pub(crate) sessions: Sessions,
    pub(crate) sender: Sender,
    pub(crate) spending: Spending,
    dice: Mutex<Dice>,
}

impl Shared {
    /// What a failure was found to be.
    pub(crate) fn diagnose(&self, failure: &Failure) -> Diagnosis {
        self.knowledge.classifier().diagnose(failure, &clock::now())
    }

    /// One random number.
    pub(crate) fn draw(&self) -> Draw {
        self.dice
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .roll()
    }

    /// What an answer cost, in USD, where that is known.
    pub(crate) fn cost(&self, model: Option<&str>, said: &Said) -> Option<f64> {
        let model = self.knowledge.catalog().find(model?)?;
        model.cost(said.tokens?)
    }

    /// What tells the keys of clients apart.
    pub(crate) fn client_key<'a>(&self, headers: &'a HeaderMap) -> &'a [u8] {
        let names = ["x-api-key", "x-goog-api-key"];
        let key = headers
            .get(AUTHORIZATION)
            .or_else(|| names.iter().find_map(|name| headers.get(*name)));
        key.map(|value| value.as_bytes()).unwrap_or_default()
    }

    /// The session of a name; one that is not known yet begins now.
    pub(crate) fn session(&self, name: &str, client: Option<&str>) -> Arc<Session> {
        let limits = self.settings.watch.limits.clone();
        let make = || {
            Session::new(
                self.ledger.begin(name, client, &self.settings.policy),
                limits,
                clock::at(),
            )
        };
        self.sessions.get_or(name, make)
    }
}

/// A gateway that runs.
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Gateway {
    /// Starts to listen, on the runtime of the caller.
    pub async fn start(
        settings: Settings,
        knowledge: Arc<dyn Knows>,
        ledger: Arc<dyn Ledger>,
    ) -> Result<Self, GatewayError> {
        if !settings.listen.ip().is_loopback() && settings.token.is_none() {
            return Err(GatewayError::Unguarded(settings.listen));
        }
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(GatewayError::Chance)?;
        let shared = Arc::new(Shared {
            lanes: Lanes::new(settings.lanes.clone()),
            sender: sender(settings.limits.connect),
            spending: Spending::default(),
            crier: Crier::new(),
            sessions: Sessions::default(),
            dice: Mutex::new(Dice::seeded(u64::from_le_bytes(seed))),
            settings,
            knowledge,
            ledger,
        });
        let (stop, stopped) = watch::channel(false);
        let (address, serving) = server::start(Arc::clone(&shared), stopped).await?;
        Ok(Self {
            address,
            shared,
            stop,
            serving,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL for a client of a protocol, tied to a session if one is named.
    pub fn base_url(&self, protocol: Protocol, session: Option<&str>) -> String {
        let session = session.map_or(String::new(), |name| format!("/s/{name}"));
        format!("http://{}{session}{}", self.address, protocol.prefix())
    }

    /// Takes a session in before its first call.
    pub fn register(&self, setup: SessionSetup) -> Arc<Session> {
        let limits = self.shared.settings.watch.limits.clone();
        self.shared
            .sessions
            .add(Session::new(setup, limits, clock::at()))
    }

    /// The session of a name.
    pub fn session(&self, name: &str) -> Option<Arc<Session>> {
        self.shared.sessions.get(name)
    }

    /// All sessions.
    pub fn sessions(&self) -> Vec<Arc<Session>> {
        self.shared.sessions.all()
    }

    /// Says what was spent today (UTC) in all, as somebody knows it who sees other gateways as well.
    pub fn spent_today(&self, usd: f64) {
        self.shared.spending.at_least(usd, clock::at());
    }

    /// How the upstreams stand: name, model and state of each lane.
    pub fn lanes(&self, now: Timestamp) -> Vec<(String, String, LaneState)> {
        let states = self.shared.lanes.states(now).into_iter();
        states
            .map(|(key, state)| (key.upstream, key.model, state))
            .collect()
    }

    /// What happens from now on.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.shared.crier.listen()
    }

    /// Takes no more calls; those under way are given a moment to end.
    pub async fn stop(self) {
        // Nobody listens if it has ended by itself.
        let _ = self.stop.send(true);
        let _ = self.serving.await;
    }
}
