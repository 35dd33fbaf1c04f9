//! A gateway that runs: the handle by which it is steered.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use unstuck_core::decision::BreakerState;
use unstuck_core::event::{BudgetReached, BudgetScope, SessionId};
use unstuck_core::question::Answer;
use unstuck_core::traffic::LaneState;
use unstuck_core::{RetryPolicy, Timestamp};

use crate::clock;
use crate::error::GatewayError;
use crate::ledger::{Ledger, Notice};
use crate::protocol::Protocol;
use crate::server::{self, Stopping};
use crate::session::{Session, SessionSetup};
use crate::settings::{Budgets, Settings};
use crate::shared::{Knows, Shared};
use crate::spending::day_of;

/// A gateway that runs.
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<Stopping>,
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
        let shared = Arc::new(Shared::new(settings, knowledge, ledger)?);
        let (stop, stopped) = watch::channel(Stopping::No);
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

    /// A person has answered what they were asked about a session whose calls are held; whether they raise its budget.
    pub fn answered(&self, session: &SessionId, answer: Answer, raises: bool) {
        let sessions = self.shared.sessions.all();
        let is_meant = |one: &&Arc<Session>| one.setup().asks && one.setup().session == *session;
        for session in sessions.iter().filter(is_meant) {
            if !answer.goes_on() {
                session.refuse_held();
                continue;
            }
            session.let_go();
            if let Some(reached) = session.budget_reached().filter(|_| raises) {
                self.raise(session, &reached);
            }
        }
    }

    /// A person raises the budget that a session was refused for, to what they were told.
    pub fn raise(&self, session: &Session, reached: &BudgetReached) {
        match reached.scope {
            BudgetScope::Session => session.allow(reached.raise_to),
            BudgetScope::GatewayDay => {
                session.raise_day(day_of(clock::at()), reached.raise_to);
            }
            // What a run may use is told anew before each attempt, and a policy's limit is nothing of a gateway's.
            BudgetScope::Run | BudgetScope::Day | BudgetScope::Policy => {}
        }
    }

    /// People have allowed a session to spend so much in all, and all sessions of today before it is refused.
    pub fn allow(&self, session: &Session, own: Option<f64>, today: Option<f64>) {
        if let Some(usd) = own {
            session.allow(usd);
        }
        if let Some(usd) = today {
            session.raise_day(day_of(clock::at()), usd);
        }
    }

    /// What may be spent.
    pub fn budgets(&self) -> Budgets {
        self.shared.settings.budgets
    }

    /// Says what was spent today (UTC) in all, as somebody knows it who sees other gateways as well.
    pub fn spent_today(&self, usd: f64) {
        self.shared.spending.at_least(usd, clock::at());
    }

    /// How the upstreams stand: name, model and state of each lane.
    pub fn lanes(&self, now: Timestamp) -> Vec<(String, String, LaneState)> {
        lanes(&self.shared, now)
    }

    /// For somebody who does not keep the gateway.
    pub fn handle(&self) -> Handle {
        Handle(Arc::downgrade(&self.shared))
    }

    /// What happens from now on.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.shared.crier.listen()
    }

    /// Takes no more calls; those under way are given a moment to end.
    pub async fn stop(self) {
        self.stop_unless(std::future::pending()).await;
    }

    /// The same, unless somebody is in a hurry: then what is under way is cut off at once. What it came to is written
    /// down in either case.
    pub async fn stop_unless(mut self, in_a_hurry: impl Future<Output = ()>) {
        // Nobody listens if it has ended by itself.
        let _ = self.stop.send(Stopping::Gently);
        tokio::select! {
            _ = &mut self.serving => return,
            () = in_a_hurry => {}
        }
        let _ = self.stop.send(Stopping::AtOnce);
        let _ = self.serving.await;
    }
}

/// A gateway, for as long as it runs.
#[derive(Clone)]
pub struct Handle(Weak<Shared>);

impl Handle {
    /// Goes so far from the next decision on, in all sessions.
    pub fn set_policy(&self, policy: RetryPolicy) {
        if let Some(shared) = self.0.upgrade() {
            shared.set_policy(Arc::new(policy));
        }
    }

    /// Name, model and state of each lane; none once the gateway has ended.
    pub fn lanes(&self, now: Timestamp) -> Vec<(String, String, LaneState)> {
        let shared = self.0.upgrade();
        shared.map_or_else(Vec::new, |shared| lanes(&shared, now))
    }
}

fn lanes(shared: &Shared, now: Timestamp) -> Vec<(String, String, LaneState)> {
    let states = shared.lanes.states(now).into_iter();
    states
        .map(|(key, mut state)| {
            let passed_over_until = shared.passed_over_until(&key.upstream);
            // A fallback is asked long before the breaker opens: an upstream that is passed over is down all the same.
            if let (BreakerState::Closed { .. }, Some(until)) = (state.breaker, passed_over_until) {
                state.breaker = BreakerState::Open { until, times: 1 };
            }
            (key.upstream, key.model, state)
        })
        .collect()
}
