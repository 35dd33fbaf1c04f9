//! Formatting of amounts of money, and the budget raises that humans have approved.

use serde_json::Value;

use crate::event::{
    BudgetReached, BudgetScope, BudgetUnit, EscalationAnswer, EscalationResolved, Event,
    EventRecord, SessionId,
};
use crate::time::Timestamp;

/// Formats an amount in USD with cents, or with more digits if it is less than a cent.
pub fn format_usd(amount: f64) -> String {
    match amount.abs() {
        v if v > 0.0 && v < 0.000_1 => "< $0.0001".to_owned(),
        v if v > 0.0 && v < 0.01 => format!("${amount:.4}"),
        _ => format!("${amount:.2}"),
    }
}

/// Formats a cost of which a part may be unknown; an unknown cost is never shown as zero.
pub fn format_cost(known: f64, has_unknown: bool) -> String {
    match (known > 0.0, has_unknown) {
        (_, false) => format_usd(known),
        (true, true) => format!("{} + unknown", format_usd(known)),
        (false, true) => "unknown".to_owned(),
    }
}

/// Returns a cost, or `None` if all usage lacks a known price.
pub fn known_cost(usd: f64, unpriced: u64) -> Option<f64> {
    (usd > 0.0 || unpriced == 0).then_some(usd)
}

/// Normalizes costs in JSON at any depth: rounds `cost_usd`, and sets it to null if the adjacent `unknown_price` says
/// that the cost is unknown.
pub fn normalize_costs(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let unpriced = fields.get("unknown_price").and_then(Value::as_u64);
            for (name, value) in fields {
                match value.as_f64().filter(|_| name == "cost_usd") {
                    Some(usd) => {
                        let told = known_cost(usd, unpriced.unwrap_or(0)).map(round_usd);
                        *value = told.map_or(Value::Null, Value::from);
                    }
                    None => normalize_costs(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(normalize_costs),
        _ => {}
    }
}

/// Rounds an amount to remove binary floating-point noise.
pub fn round_usd(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
}

/// A budget in effect while an attempt runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActiveUsageBudget {
    /// The scope of the budget.
    pub scope: BudgetScope,
    /// The unit of the budget.
    pub unit: BudgetUnit,
    /// The usage of attempts that have ended.
    pub used: f64,
    /// The total limit.
    pub limit: f64,
    /// The configured limit: approval allows this amount once more.
    pub configured: f64,
}

impl ActiveUsageBudget {
    /// Returns the reached budget if `more` additional usage exhausts it.
    pub fn check_reached(&self, more: f64) -> Option<BudgetReached> {
        let used = self.used + more;
        let reached =
            || BudgetReached::new(self.scope, self.unit, used, self.limit, self.configured);
        (used >= self.limit).then(reached)
    }
}

/// The budget raises of a run, as a fold over its events.
///
/// Only an answer by a named human raises a budget: approval of the escalation that shows the amount.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BudgetRaises {
    open: Vec<OpenBudgetEscalation>,
    raised: Vec<BudgetRaise>,
}

#[derive(Debug, Clone, PartialEq)]
struct OpenBudgetEscalation {
    escalation_id: String,
    session: Option<SessionId>,
    reached: Option<BudgetReached>,
    reason: String,
}

#[derive(Debug, Clone, PartialEq)]
struct BudgetRaise {
    session: Option<SessionId>,
    reached: BudgetReached,
    raised_at: Timestamp,
}

impl BudgetRaises {
    /// Folds all events.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Self {
        let mut budgets = Self::default();
        events.into_iter().for_each(|one| budgets.apply(one));
        budgets
    }

    /// Applies an event.
    pub fn apply(&mut self, recorded: &EventRecord) {
        match &recorded.event {
            Event::EscalationOpened(asked) if asked.is_about_budget() => {
                self.open.retain(|one| one.escalation_id != asked.id);
                self.open.push(OpenBudgetEscalation {
                    escalation_id: asked.id.clone(),
                    session: asked.session.clone(),
                    reached: asked.budget,
                    reason: asked.reason.clone(),
                });
            }
            Event::EscalationResolved(resolved) => {
                self.on_escalation_resolved(resolved, recorded.at)
            }
            Event::RunFinished(end) if !end.outcome.is_resumable() => self.open.clear(),
            _ => {}
        }
    }

    fn on_escalation_resolved(&mut self, resolved: &EscalationResolved, at: Timestamp) {
        let Some(id) = &resolved.id else {
            return;
        };
        let Some(place) = self.open.iter().position(|one| one.escalation_id == *id) else {
            return;
        };
        let asked = self.open.remove(place);
        if let Some(reached) = asked.reached.filter(|_| resolved.raises_budget()) {
            self.raised.push(BudgetRaise {
                session: asked.session,
                reached,
                raised_at: at,
            });
        }
    }

    /// Returns the effective limit for a configured one.
    pub fn effective_limit(
        &self,
        scope: BudgetScope,
        unit: BudgetUnit,
        session: &SessionId,
        configured: f64,
        now: Timestamp,
    ) -> f64 {
        let is_meant = |one: &&BudgetRaise| {
            let reached = &one.reached;
            let is_its = scope.is_shared_by_run() || one.session.as_ref() == Some(session);
            let is_over = match scope {
                BudgetScope::Day | BudgetScope::GatewayDay => {
                    one.raised_at.day_number() != now.day_number()
                }
                BudgetScope::Run | BudgetScope::Session | BudgetScope::Policy => false,
            };
            reached.scope == scope && reached.unit == unit && is_its && !is_over
        };
        let raised = self.raised.iter().filter(is_meant);
        raised.fold(configured, |limit, one| limit.max(one.reached.raise_to))
    }

    /// Returns the open budget escalation of a session: its id and its reason.
    pub fn open_escalation_of(&self, session: &SessionId) -> Option<(&str, &str)> {
        let mut open = self.open.iter();
        let asked = open.find(|one| one.session.as_ref() == Some(session))?;
        Some((&asked.escalation_id, &asked.reason))
    }

    /// Returns the oldest open budget escalation: its id and its reason.
    pub fn oldest_open_escalation(&self) -> Option<(&str, &str)> {
        let asked = self.open.first()?;
        Some((&asked.escalation_id, &asked.reason))
    }
}

impl EscalationResolved {
    /// True if the resolution raises the budget: approval by a named human.
    pub fn raises_budget(&self) -> bool {
        self.by == "human"
            && self.user.is_some()
            && self.answer() == Some(EscalationAnswer::Approve)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn unknown_costs_are_never_shown_as_zero() {
        assert_eq!(
            [
                format_cost(0.0, false),
                format_cost(0.0, true),
                format_cost(0.42, true),
                format_cost(0.42, false)
            ],
            ["$0.00", "unknown", "$0.42 + unknown", "$0.42"]
        );
        assert_eq!(
            [format_usd(0.004), format_usd(0.000_01)],
            ["$0.0040", "< $0.0001"]
        );
    }

    #[test]
    fn json_costs_are_rounded_and_unknown_ones_are_null() {
        let mut told = serde_json::json!({
            "cost_usd": 0.1 + 0.02,
            "sessions": [
                { "cost_usd": 0.0, "unknown_price": 2 },
                { "cost_usd": 0.5, "unknown_price": 2 },
                { "cost_usd": 0.0 },
                { "cost_usd": null },
            ],
        });
        normalize_costs(&mut told);
        assert_eq!(
            told.to_string(),
            r#"{"cost_usd":0.12,"sessions":[{"cost_usd":null,"unknown_price":2},{"cost_usd":0.5,"unknown_price":2},{"cost_usd":0.0},{"cost_usd":null}]}"#
        );
    }

    #[test]
    fn a_raise_for_a_day_expires_after_that_day() {
        let session = SessionId::new("r-1");
        let reached = |scope| BudgetReached::new(scope, BudgetUnit::Usd, 30.0, 25.0, 25.0);
        let at = Timestamp::from_seconds(1_794_744_000);
        let raised = |scope| BudgetRaises {
            open: Vec::new(),
            raised: vec![BudgetRaise {
                session: Some(session.clone()),
                reached: reached(scope),
                raised_at: at,
            }],
        };
        let limit = |scope, session: &SessionId, hours: u64| {
            let now = at.after(Duration::from_secs(hours * 3600));
            raised(scope).effective_limit(scope, BudgetUnit::Usd, session, 25.0, now)
        };
        let other = SessionId::new("r-2");
        // It was raised at noon (UTC).
        for (hours, most) in [(0, 55.0), (11, 55.0), (12, 25.0)] {
            assert_eq!(limit(BudgetScope::Day, &session, hours), most);
            assert_eq!(limit(BudgetScope::Day, &other, hours), most);
            assert_eq!(limit(BudgetScope::GatewayDay, &session, hours), most);
        }
        assert_eq!(limit(BudgetScope::Session, &other, 0), 25.0);
        assert_eq!(limit(BudgetScope::Run, &other, 999), 55.0);
        let run = raised(BudgetScope::Run);
        let tokens = run.effective_limit(BudgetScope::Run, BudgetUnit::Tokens, &session, 9.0, at);
        assert_eq!(tokens, 9.0, "another unit");
    }
}
