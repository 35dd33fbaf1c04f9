//! One attempt of an agent whose calls go through a private gateway.

use std::sync::Arc;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use unstuck_core::event::{BudgetReached, LastCall, Measured};
use unstuck_core::stuck::{StuckSign, StuckWhat};
use unstuck_core::{Diagnosis, Timestamp};
use unstuck_gateway::watch::What;
use unstuck_gateway::{Counted, Notice, Noticed, Session};
use unstuck_run::drive::Attendance;

use super::words::said;
use crate::clock;

/// An attempt whose calls go through the gateway.
pub(super) struct Attending {
    pub(super) command: Vec<String>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) session: Arc<Session>,
    /// What its calls had used before the attempt.
    pub(super) before: Counted,
    pub(super) notices: Receiver<Notice>,
    pub(super) waits_until: Option<Timestamp>,
    /// Whether the attempt is ended when the agent goes in circles.
    pub(super) ends_in_circles: bool,
    /// Whether a person is asked when a budget of the gateway is used up.
    pub(super) asks_about_budgets: bool,
    /// The attempt is under way for as long as this is kept.
    #[expect(dead_code, reason = "it is only kept")]
    pub(super) under_way: Arc<()>,
}

impl Attending {
    fn heard(&mut self, what: &Noticed) -> String {
        match what {
            Noticed::Retrying { until, .. } => self.waits_until = Some(*until),
            Noticed::Recovered { .. } | Noticed::GaveUp { .. } => self.waits_until = None,
            Noticed::Moved { .. }
            | Noticed::PassedOver(_)
            | Noticed::Circling(_)
            | Noticed::Held { .. }
            | Noticed::SpentUp { .. }
            | Noticed::Uncounted { .. } => {}
        }
        said(what)
    }
}

impl Attendance for Attending {
    fn command(&self) -> &[String] {
        &self.command
    }

    fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    fn news(&mut self) -> Vec<String> {
        let name = self.session.name();
        let mut lines = Vec::new();
        loop {
            match self.notices.try_recv() {
                Ok(notice) if notice.session == name => lines.push(self.heard(&notice.what)),
                // What was missed is only told; what counts is asked for.
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return lines,
            }
        }
    }

    fn waits_until(&self) -> Option<Timestamp> {
        self.waits_until.filter(|until| *until > clock::now().at)
    }

    fn stuck(&self) -> Option<StuckSign> {
        // Many subagents at once may be how the work is done.
        let sign = self.session.circling();
        let sign = sign.filter(|sign| self.ends_in_circles && sign.what != What::Storm)?;
        Some(StuckSign {
            what: StuckWhat::InCircles,
            times: sign.count,
            repeated: sign.sentence.trim_end_matches('.').to_owned(),
            result: String::new(),
        })
    }

    fn used(&self) -> Measured {
        let used = self.session.counted().since(self.before);
        Measured {
            cost_usd: used.cost_usd,
            tokens: used.tokens,
            ..Measured::default()
        }
    }

    fn trouble(&self) -> Option<Diagnosis> {
        self.session.trouble().as_deref().cloned()
    }

    fn last_success(&self) -> Option<Timestamp> {
        self.session.last_success()
    }

    fn failing_since(&self) -> Option<Timestamp> {
        self.session.failing_since()
    }

    fn conversation(&self) -> Option<String> {
        self.session.conversation()
    }

    fn last_call(&self) -> Option<LastCall> {
        self.session.last_call()
    }

    fn budget_reached(&self) -> Option<BudgetReached> {
        let reached = self.session.budget_reached();
        reached.filter(|one| self.asks_about_budgets || one.scope.is_shared_by_run())
    }
}

/// An attempt whose agent asks its API itself, since the gateway could not be started.
pub(super) struct Alone {
    pub(super) command: Vec<String>,
    pub(super) why: Option<String>,
}

impl Attendance for Alone {
    fn command(&self) -> &[String] {
        &self.command
    }

    fn variables(&self) -> &[(String, String)] {
        &[]
    }

    fn news(&mut self) -> Vec<String> {
        let told =
            |why| format!("there is no gateway for this agent: {why}; it asks its API itself");
        self.why.take().map(told).into_iter().collect()
    }

    fn waits_until(&self) -> Option<Timestamp> {
        None
    }

    fn stuck(&self) -> Option<StuckSign> {
        None
    }

    fn used(&self) -> Measured {
        Measured::default()
    }

    fn trouble(&self) -> Option<Diagnosis> {
        None
    }

    fn last_success(&self) -> Option<Timestamp> {
        None
    }

    fn failing_since(&self) -> Option<Timestamp> {
        None
    }

    fn conversation(&self) -> Option<String> {
        None
    }

    fn last_call(&self) -> Option<LastCall> {
        None
    }

    fn budget_reached(&self) -> Option<BudgetReached> {
        None
    }
}
