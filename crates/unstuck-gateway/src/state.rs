//! The state shared by all calls of a gateway, and its knowledge.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use unstuck_core::decision::{ModelCatalog, RandomDraw, SeededRng};
use unstuck_core::event::{BudgetReached, BudgetScope, BudgetUnit};
use unstuck_core::knowledge::RecoveryKnowledge;
use unstuck_core::{Classifier, Diagnosis, Failure, RetryPolicy, Timestamp};

use crate::admission_queue::AdmissionQueues;
use crate::connectivity::Connectivity;
use crate::error::GatewayError;
use crate::protocol::ResponseSummary;
use crate::recorder::{EventBus, GatewayRecorder};
use crate::session::{GatewaySession, GatewaySessions};
use crate::settings::{GatewaySettings, restrict_client_keys};
use crate::shutdown_cutoff::CallCutoff;
use crate::spending::{BudgetOwner, BudgetRemaining, DaySpending};
use crate::system_clock;
use crate::upstream::UpstreamClient;
use crate::upstream_health::UpstreamHealthMap;

/// Gives access to the knowledge about failures, strategies and models.
pub trait GatewayKnowledgeProvider: Send + Sync {
    /// Returns the failure classifier.
    fn classifier(&self) -> &Classifier;

    /// Returns the recovery playbook.
    fn playbook(&self) -> &RecoveryKnowledge;

    /// Returns the model catalog.
    fn catalog(&self) -> &ModelCatalog;
}

/// The knowledge built into the program.
#[derive(Debug)]
pub struct BuiltInKnowledge(ModelCatalog);

impl Default for BuiltInKnowledge {
    fn default() -> Self {
        Self(ModelCatalog::embedded())
    }
}

impl GatewayKnowledgeProvider for BuiltInKnowledge {
    fn classifier(&self) -> &Classifier {
        Classifier::built_in()
    }

    fn playbook(&self) -> &RecoveryKnowledge {
        RecoveryKnowledge::built_in()
    }

    fn catalog(&self) -> &ModelCatalog {
        &self.0
    }
}

/// The state shared by all calls.
pub(crate) struct GatewayState {
    pub(crate) settings: GatewaySettings,
    pub(crate) knowledge: Arc<dyn GatewayKnowledgeProvider>,
    pub(crate) recorder: Arc<dyn GatewayRecorder>,
    pub(crate) events: EventBus,
    pub(crate) admission: AdmissionQueues,
    pub(crate) health: UpstreamHealthMap,
    pub(crate) connectivity: Connectivity,
    pub(crate) sessions: GatewaySessions,
    pub(crate) client: UpstreamClient,
    pub(crate) spending: DaySpending,
    pub(crate) shutdown: CallCutoff,
    /// The policy of new sessions.
    policy: Mutex<Arc<RetryPolicy>>,
    dice: Mutex<SeededRng>,
}

impl GatewayState {
    /// Creates the state of a new gateway.
    pub(crate) fn new(
        mut settings: GatewaySettings,
        knowledge: Arc<dyn GatewayKnowledgeProvider>,
        ledger: Arc<dyn GatewayRecorder>,
    ) -> Result<Self, GatewayError> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(GatewayError::Randomness)?;
        restrict_client_keys(&mut settings.upstreams);
        Ok(Self {
            admission: AdmissionQueues::new(settings.lanes.clone()),
            client: UpstreamClient::new(settings.limits.connect, &settings.network)?,
            health: UpstreamHealthMap::default(),
            connectivity: Connectivity::new(settings.network_probe.clone()),
            spending: DaySpending::default(),
            shutdown: CallCutoff::default(),
            events: EventBus::new(),
            sessions: GatewaySessions::default(),
            policy: Mutex::new(Arc::new(settings.policy.clone())),
            dice: Mutex::new(SeededRng::seeded(u64::from_le_bytes(seed))),
            settings,
            knowledge,
            recorder: ledger,
        })
    }

    /// Returns the time when an upstream that is skipped for its fallback is used again; `None` if it is not skipped.
    pub(crate) fn skipped_until(&self, upstream: &str) -> Option<Timestamp> {
        let mut upstreams = self.settings.upstreams.iter();
        let upstream = upstreams.find(|one| one.name == upstream)?;
        self.health.get(&upstream.base.to_string()).skipped_until()
    }

    /// Diagnoses a failure.
    pub(crate) fn diagnose(&self, failure: &Failure) -> Diagnosis {
        self.knowledge
            .classifier()
            .diagnose(failure, &system_clock::clock_reading())
    }

    /// Returns one random number.
    pub(crate) fn random_draw(&self) -> RandomDraw {
        self.dice
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next_draw()
    }

    /// Returns the cost of a response in USD, if known.
    pub(crate) fn cost_usd(&self, model: Option<&str>, said: &ResponseSummary) -> Option<f64> {
        let model = self.knowledge.catalog().find(model?)?;
        model.cost(said.tokens?)
    }

    /// Returns the bytes that distinguish the keys of clients.
    pub(crate) fn client_key<'a>(&self, headers: &'a HeaderMap) -> &'a [u8] {
        let names = ["x-api-key", "x-goog-api-key"];
        let key = headers
            .get(AUTHORIZATION)
            .or_else(|| names.iter().find_map(|name| headers.get(*name)));
        key.map(|value| value.as_bytes()).unwrap_or_default()
    }

    /// Returns the budget that a session has exhausted; `None` while it may spend.
    pub(crate) fn exhausted_budget(&self, session: &GatewaySession) -> Option<BudgetReached> {
        let budgets = &self.settings.budgets;
        let spent = session.spent();
        let own = session.allowance(budgets.session);
        let reached = |scope, used, limit, configured| {
            BudgetReached::new(scope, BudgetUnit::Usd, used, limit, configured)
        };
        if let Some(most) = own.filter(|most| spent >= *most) {
            let configured = session.setup().budget.or(budgets.session).unwrap_or(most);
            return Some(reached(BudgetScope::Session, spent, most, configured));
        }
        if let Some(reached) = session.run_budget().and_then(|purse| purse.reached_limit()) {
            return Some(reached);
        }
        let now = system_clock::timestamp_now();
        let (configured, today) = (budgets.day?, self.spending.today(now));
        let most = session.daily_spending_limit(now.day_number(), configured);
        (today >= most).then(|| reached(BudgetScope::GatewayDay, today, most, configured))
    }

    /// Returns the tightest remaining budget of a session; `None` without a budget.
    pub(crate) fn remaining_budget(&self, session: &GatewaySession) -> Option<BudgetRemaining> {
        let budgets = &self.settings.budgets;
        let left = |usd, whose| BudgetRemaining { usd, owner: whose };
        let own = session.allowance(budgets.session);
        let own = own.map(|most| left(most - session.spent(), BudgetOwner::Session));
        let of_day = budgets.day.map(|most| {
            let now = system_clock::timestamp_now();
            let most = session.daily_spending_limit(now.day_number(), most);
            left(most - self.spending.today(now), BudgetOwner::Day)
        });
        // Already over the limit: a human approved it.
        let of_policy = session.policy().max_cost;
        let of_policy = of_policy
            .map(|most| left(most - session.spent(), BudgetOwner::Policy))
            .filter(|left| left.usd > 0.0);
        let all = [own, of_day, of_policy].into_iter().flatten();
        all.min_by(|a, b| a.usd.total_cmp(&b.usd))
    }

    /// Returns the policy of new sessions.
    pub(crate) fn policy(&self) -> Arc<RetryPolicy> {
        Arc::clone(&self.policy.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the policy of all sessions for the next decisions.
    pub(crate) fn set_policy(&self, policy: Arc<RetryPolicy>) {
        *self.policy.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&policy);
        for session in self.sessions.all() {
            session.set_policy(Arc::clone(&policy));
        }
    }

    /// Returns the session of that name, creating it if needed.
    pub(crate) fn session(&self, name: &str, client: Option<&str>) -> Arc<GatewaySession> {
        let limits = self.settings.loop_rules.limits.clone();
        let make = || {
            let setup = self.recorder.begin_session(name, client, &self.policy());
            GatewaySession::new(setup, limits, system_clock::timestamp_now())
        };
        self.sessions.get_or(name, make)
    }
}
