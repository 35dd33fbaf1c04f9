//! What all calls of a gateway share, and what it knows.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use unstuck_core::decision::{Catalog, Dice, Draw};
use unstuck_core::event::{BudgetReached, BudgetScope, BudgetUnit};
use unstuck_core::knowledge::Playbook;
use unstuck_core::{Classifier, Diagnosis, Failure, RetryPolicy, Timestamp};

use crate::clock;
use crate::ending::Ending;
use crate::error::GatewayError;
use crate::health::Health;
use crate::lanes::Lanes;
use crate::ledger::{Crier, Ledger};
use crate::offline::Offline;
use crate::protocol::Said;
use crate::session::{Session, Sessions};
use crate::settings::{Settings, keep_client_keys};
use crate::spending::{Left, Spending, Whose, day_of};
use crate::upstream::Sender;

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
    pub(crate) health: Health,
    pub(crate) offline: Offline,
    pub(crate) sessions: Sessions,
    pub(crate) sender: Sender,
    pub(crate) spending: Spending,
    pub(crate) ending: Ending,
    /// That of sessions which begin.
    policy: Mutex<Arc<RetryPolicy>>,
    dice: Mutex<Dice>,
}

impl Shared {
    /// What the calls of a new gateway share.
    pub(crate) fn new(
        mut settings: Settings,
        knowledge: Arc<dyn Knows>,
        ledger: Arc<dyn Ledger>,
    ) -> Result<Self, GatewayError> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(GatewayError::Chance)?;
        keep_client_keys(&mut settings.upstreams);
        Ok(Self {
            lanes: Lanes::new(settings.lanes.clone()),
            sender: Sender::new(settings.limits.connect, &settings.network)?,
            health: Health::default(),
            offline: Offline::new(settings.network_probe.clone()),
            spending: Spending::default(),
            ending: Ending::default(),
            crier: Crier::new(),
            sessions: Sessions::default(),
            policy: Mutex::new(Arc::new(settings.policy.clone())),
            dice: Mutex::new(Dice::seeded(u64::from_le_bytes(seed))),
            settings,
            knowledge,
            ledger,
        })
    }

    /// When an upstream that is passed over for its fallback is asked again; none where it is not.
    pub(crate) fn passed_over_until(&self, upstream: &str) -> Option<Timestamp> {
        let mut upstreams = self.settings.upstreams.iter();
        let upstream = upstreams.find(|one| one.name == upstream)?;
        self.health
            .of(&upstream.base.to_string())
            .passed_over_until()
    }

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

    /// Which budget a session has used up; none while it may spend.
    pub(crate) fn used_up(&self, session: &Session) -> Option<BudgetReached> {
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
        if let Some(reached) = session.purse().and_then(|purse| purse.reached()) {
            return Some(reached);
        }
        let now = clock::at();
        let (configured, today) = (budgets.day?, self.spending.today(now));
        let most = session.allowance_of_day(day_of(now), configured);
        (today >= most).then(|| reached(BudgetScope::GatewayDay, today, most, configured))
    }

    /// What a session may still spend, by the budget that has the least left; none where there is no budget.
    pub(crate) fn left(&self, session: &Session) -> Option<Left> {
        let budgets = &self.settings.budgets;
        let left = |usd, whose| Left { usd, whose };
        let own = session.allowance(budgets.session);
        let own = own.map(|most| left(most - session.spent(), Whose::Session));
        let of_day = budgets.day.map(|most| {
            let now = clock::at();
            let most = session.allowance_of_day(day_of(now), most);
            left(most - self.spending.today(now), Whose::Day)
        });
        // Whoever has gone beyond it was let by a person.
        let of_policy = session.policy().max_cost;
        let of_policy = of_policy
            .map(|most| left(most - session.spent(), Whose::Policy))
            .filter(|left| left.usd > 0.0);
        let all = [own, of_day, of_policy].into_iter().flatten();
        all.min_by(|a, b| a.usd.total_cmp(&b.usd))
    }

    /// How far to go in sessions that begin.
    pub(crate) fn policy(&self) -> Arc<RetryPolicy> {
        Arc::clone(&self.policy.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Goes so far from the next decision on, in all sessions.
    pub(crate) fn set_policy(&self, policy: Arc<RetryPolicy>) {
        *self.policy.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&policy);
        for session in self.sessions.all() {
            session.set_policy(Arc::clone(&policy));
        }
    }

    /// The session of a name; one that is not known yet begins now.
    pub(crate) fn session(&self, name: &str, client: Option<&str>) -> Arc<Session> {
        let limits = self.settings.watch.limits.clone();
        let make = || {
            let setup = self.ledger.begin(name, client, &self.policy());
            Session::new(setup, limits, clock::at())
        };
        self.sessions.get_or(name, make)
    }
}
