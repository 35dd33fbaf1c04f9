//! A running gateway and its handle.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use unstuck_core::admission::AdmissionControllerState;
use unstuck_core::decision::CircuitState;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::event::{BudgetReached, BudgetScope, SessionId};
use unstuck_core::{RetryPolicy, Timestamp};

use crate::error::GatewayError;
use crate::protocol::Protocol;
use crate::recorder::{GatewayRecorder, GatewaySessionEvent};
use crate::server::{self, StopMode};
use crate::session::{GatewaySession, GatewaySessionSetup};
use crate::settings::{GatewayBudgetSettings, GatewaySettings};
use crate::state::{GatewayKnowledgeProvider, GatewayState};
use crate::system_clock;

/// A running gateway.
pub struct Gateway {
    address: SocketAddr,
    state: Arc<GatewayState>,
    stop: watch::Sender<StopMode>,
    serving: JoinHandle<()>,
}

impl Gateway {
    /// Starts to listen, on the runtime of the caller.
    pub async fn start(
        settings: GatewaySettings,
        knowledge: Arc<dyn GatewayKnowledgeProvider>,
        ledger: Arc<dyn GatewayRecorder>,
    ) -> Result<Self, GatewayError> {
        if !settings.listen.ip().is_loopback() && settings.token.is_none() {
            return Err(GatewayError::TokenRequired(settings.listen));
        }
        let shared = Arc::new(GatewayState::new(settings, knowledge, ledger)?);
        let (stop, stopped) = watch::channel(StopMode::No);
        let (address, serving) = server::start(Arc::clone(&shared), stopped).await?;
        Ok(Self {
            address,
            state: shared,
            stop,
            serving,
        })
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL for a client of a protocol, tied to a session if one is named.
    pub fn base_url(&self, protocol: Protocol, session: Option<&str>) -> String {
        let session = session.map_or(String::new(), |name| format!("/s/{name}"));
        format!("http://{}{session}{}", self.address, protocol.prefix())
    }

    /// Registers a session before its first call.
    pub fn register(&self, setup: GatewaySessionSetup) -> Arc<GatewaySession> {
        let limits = self.state.settings.loop_rules.limits.clone();
        self.state.sessions.add(GatewaySession::new(
            setup,
            limits,
            system_clock::timestamp_now(),
        ))
    }

    /// Returns the session of that name.
    pub fn session(&self, name: &str) -> Option<Arc<GatewaySession>> {
        self.state.sessions.get(name)
    }

    /// Returns all sessions.
    pub fn sessions(&self) -> Vec<Arc<GatewaySession>> {
        self.state.sessions.all()
    }

    /// Applies an answer to the escalation of a session whose calls are held; `raises` says whether it raises the
    /// budget.
    pub fn apply_answer(&self, session: &SessionId, answer: EscalationAnswer, raises: bool) {
        let sessions = self.state.sessions.all();
        let is_meant =
            |one: &&Arc<GatewaySession>| one.setup().escalates && one.setup().session == *session;
        for session in sessions.iter().filter(is_meant) {
            if !answer.continues() {
                session.keep_conversations_blocked();
                continue;
            }
            session.clear_loops();
            if let Some(reached) = session.budget_reached().filter(|_| raises) {
                self.raise_budget(session, &reached);
            }
        }
    }

    /// Raises the budget that blocked a session, to the approved amount.
    pub fn raise_budget(&self, session: &GatewaySession, reached: &BudgetReached) {
        match reached.scope {
            BudgetScope::Session => session.allow_spending(reached.raise_to),
            BudgetScope::GatewayDay => {
                session
                    .raise_day_budget(system_clock::timestamp_now().day_number(), reached.raise_to);
            }
            // A run's limit is set again before each attempt, and a policy's limit is not the gateway's.
            BudgetScope::Run | BudgetScope::Day | BudgetScope::Policy => {}
        }
    }

    /// Raises the total limits of a session and of all sessions of today before they are reached.
    pub fn allow_spending(&self, session: &GatewaySession, own: Option<f64>, today: Option<f64>) {
        if let Some(usd) = own {
            session.allow_spending(usd);
        }
        if let Some(usd) = today {
            session.raise_day_budget(system_clock::timestamp_now().day_number(), usd);
        }
    }

    /// Returns the budgets.
    pub fn budgets(&self) -> GatewayBudgetSettings {
        self.state.settings.budgets
    }

    /// Returns true if a budget of a day applies to any session.
    pub fn has_day_budget(&self) -> bool {
        let is_limited = |session: &Arc<GatewaySession>| {
            let purse = session.run_budget();
            purse.is_some_and(|purse| purse.has_day_limit())
        };
        self.budgets().day.is_some() || self.state.sessions.all().iter().any(is_limited)
    }

    /// Raises the usage of all sessions on the day of `now` (UTC) to these totals, for callers that also know other
    /// gateways: the cost in USD and the uncached tokens.
    pub fn raise_usage_today(&self, usd: f64, tokens: u64, now: Timestamp) {
        self.state.spending.raise_to(usd, now);
        for session in self.state.sessions.all() {
            if let Some(purse) = session.run_budget() {
                purse.raise_day_usage(usd, tokens, now);
            }
        }
    }

    /// Returns name, model and state of each lane.
    pub fn lane_states(&self, now: Timestamp) -> Vec<(String, String, AdmissionControllerState)> {
        lane_states(&self.state, now)
    }

    /// Returns a weak handle to the gateway.
    pub fn handle(&self) -> GatewayHandle {
        GatewayHandle(Arc::downgrade(&self.state))
    }

    /// Subscribes to session events from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<GatewaySessionEvent> {
        self.state.events.subscribe()
    }

    /// Stops accepting calls; calls in progress get some time to end.
    pub async fn stop(self) {
        self.stop_or_abort(std::future::pending()).await;
    }

    /// Stops like [`stop`](Self::stop), but cuts off calls in progress once `in_a_hurry` completes. Their results are
    /// recorded in either case.
    pub async fn stop_or_abort(mut self, in_a_hurry: impl Future<Output = ()>) {
        // The receiver is gone if the server has ended by itself.
        let _ = self.stop.send(StopMode::Graceful);
        tokio::select! {
            _ = &mut self.serving => return,
            () = in_a_hurry => {}
        }
        let _ = self.stop.send(StopMode::Immediate);
        let _ = self.serving.await;
    }
}

/// A weak handle to a running gateway.
#[derive(Clone)]
pub struct GatewayHandle(Weak<GatewayState>);

impl GatewayHandle {
    /// Sets the retry policy for the next decisions of all sessions.
    pub fn set_policy(&self, policy: RetryPolicy) {
        if let Some(shared) = self.0.upgrade() {
            shared.set_policy(Arc::new(policy));
        }
    }

    /// Returns name, model and state of each lane; empty once the gateway has stopped.
    pub fn lane_states(&self, now: Timestamp) -> Vec<(String, String, AdmissionControllerState)> {
        let shared = self.0.upgrade();
        shared.map_or_else(Vec::new, |shared| lane_states(&shared, now))
    }
}

fn lane_states(
    shared: &GatewayState,
    now: Timestamp,
) -> Vec<(String, String, AdmissionControllerState)> {
    let states = shared.admission.states(now).into_iter();
    states
        .map(|(key, mut state)| {
            let passed_over_until = shared.skipped_until(&key.upstream);
            // A fallback is used long before the circuit opens: a skipped upstream is down all the same.
            if let (CircuitState::Closed { .. }, Some(until)) = (state.breaker, passed_over_until) {
                state.breaker = CircuitState::Open { until, openings: 1 };
            }
            (key.upstream, key.model, state)
        })
        .collect()
}
