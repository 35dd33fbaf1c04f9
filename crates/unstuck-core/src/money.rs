//! Amounts of money in words, and the budgets that people have raised.

use std::time::Duration;

use serde_json::Value;

use crate::event::{
    Answer, BudgetReached, BudgetScope, BudgetUnit, Event, Recorded, RecoveryResolved, SessionId,
};
use crate::moment::Timestamp;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An amount in USD: cents, or more digits where there are less than that.
pub fn usd(amount: f64) -> String {
    match amount.abs() {
        v if v > 0.0 && v < 0.000_1 => "< $0.0001".to_owned(),
        v if v > 0.0 && v < 0.01 => format!("${amount:.4}"),
        _ => format!("${amount:.2}"),
    }
}

/// A cost of which a part may be unknown; unknown is never told as nothing.
pub fn cost(known: f64, has_unknown: bool) -> String {
    match (known > 0.0, has_unknown) {
        (_, false) => usd(known),
        (true, true) => format!("{} + unknown", usd(known)),
        (false, true) => "unknown".to_owned(),
    }
}

/// A cost of which nothing may be known: none where there is only what has no known price.
pub fn known(usd: f64, unpriced: u64) -> Option<f64> {
    (usd > 0.0 || unpriced == 0).then_some(usd)
}

/// Makes costs in JSON fit to be told, however deep: `cost_usd` without the dust of binary fractions, and null where
/// `unknown_price` beside it says that nothing of it is known.
pub fn tidy_costs(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let unpriced = fields.get("unknown_price").and_then(Value::as_u64);
            for (name, value) in fields {
                match value.as_f64().filter(|_| name == "cost_usd") {
                    Some(usd) => {
                        let told = known(usd, unpriced.unwrap_or(0)).map(rounded);
                        *value = told.map_or(Value::Null, Value::from);
                    }
                    None => tidy_costs(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(tidy_costs),
        _ => {}
    }
}

/// An amount of money without the dust of binary fractions.
pub fn rounded(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
}

/// A budget that holds while an attempt runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetLimit {
    /// Which one.
    pub scope: BudgetScope,
    /// What it counts.
    pub unit: BudgetUnit,
    /// What attempts that have ended have used of it.
    pub used: f64,
    /// What may be used in all.
    pub limit: f64,
    /// What the configuration allows: approval allows as much again.
    pub configured: f64,
}

impl BudgetLimit {
    /// The budget, if it is used up with so much more.
    pub fn reached(&self, more: f64) -> Option<BudgetReached> {
        let used = self.used + more;
        let reached =
            || BudgetReached::new(self.scope, self.unit, used, self.limit, self.configured);
        (used >= self.limit).then(reached)
    }
}

/// The budgets of a run that people have raised, as a fold over its events.
///
/// Only an answer with a name raises one: approval of the very question that tells the amount.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RaisedBudgets {
    open: Vec<OpenBudget>,
    raised: Vec<Raised>,
}

#[derive(Debug, Clone, PartialEq)]
struct OpenBudget {
    question: String,
    session: Option<SessionId>,
    reached: Option<BudgetReached>,
    reason: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Raised {
    session: Option<SessionId>,
    reached: BudgetReached,
    at: Timestamp,
}

impl RaisedBudgets {
    /// The whole fold.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Self {
        let mut budgets = Self::default();
        events.into_iter().for_each(|one| budgets.record(one));
        budgets
    }

    /// Takes in what happened.
    pub fn record(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::RecoveryEscalated(asked) if asked.is_about_budget() => {
                self.open.retain(|one| one.question != asked.id);
                self.open.push(OpenBudget {
                    question: asked.id.clone(),
                    session: asked.session.clone(),
                    reached: asked.budget,
                    reason: asked.reason.clone(),
                });
            }
            Event::RecoveryResolved(resolved) => self.answered(resolved, recorded.at),
            Event::RunFinished(end) if !end.outcome.is_resumable() => self.open.clear(),
            _ => {}
        }
    }

    fn answered(&mut self, resolved: &RecoveryResolved, at: Timestamp) {
        let Some(id) = &resolved.id else {
            return;
        };
        let Some(place) = self.open.iter().position(|one| one.question == *id) else {
            return;
        };
        let asked = self.open.remove(place);
        if let Some(reached) = asked.reached.filter(|_| resolved.raises_budget()) {
            self.raised.push(Raised {
                session: asked.session,
                reached,
                at,
            });
        }
    }

    /// What may be used in all, given what is configured.
    pub fn limit(
        &self,
        scope: BudgetScope,
        unit: BudgetUnit,
        session: &SessionId,
        configured: f64,
        now: Timestamp,
    ) -> f64 {
        let is_meant = |one: &&Raised| {
            let reached = &one.reached;
            let is_its = scope.is_shared_by_run() || one.session.as_ref() == Some(session);
            let is_over = match scope {
                BudgetScope::Day => one.at.after(DAY) <= now,
                BudgetScope::GatewayDay => day_of(one.at) != day_of(now),
                _ => false,
            };
            reached.scope == scope && reached.unit == unit && is_its && !is_over
        };
        let raised = self.raised.iter().filter(is_meant);
        raised.fold(configured, |limit, one| limit.max(one.reached.raise_to))
    }

    /// The question about a budget that a session waits for, and why it is asked.
    pub fn question_of(&self, session: &SessionId) -> Option<(&str, &str)> {
        let mut open = self.open.iter();
        let asked = open.find(|one| one.session.as_ref() == Some(session))?;
        Some((&asked.question, &asked.reason))
    }

    /// The oldest question about a budget that waits, and why it is asked.
    pub fn question(&self) -> Option<(&str, &str)> {
        let asked = self.open.first()?;
        Some((&asked.question, &asked.reason))
    }
}

/// The number of a day (UTC).
fn day_of(moment: Timestamp) -> i64 {
    moment.millis().div_euclid(86_400_000)
}

impl RecoveryResolved {
    /// Whether it raises the budget that it was asked about: approval by a person with a name.
    pub fn raises_budget(&self) -> bool {
        self.by == "human" && self.who.is_some() && self.answer() == Some(Answer::Approve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_never_told_as_nothing() {
        assert_eq!(
            [
                cost(0.0, false),
                cost(0.0, true),
                cost(0.42, true),
                cost(0.42, false)
            ],
            ["$0.00", "unknown", "$0.42 + unknown", "$0.42"]
        );
        assert_eq!([usd(0.004), usd(0.000_01)], ["$0.0040", "< $0.0001"]);
    }

    #[test]
    fn costs_in_json_have_no_dust_and_unknown_ones_are_null() {
        let mut told = serde_json::json!({
            "cost_usd": 0.1 + 0.02,
            "sessions": [
                { "cost_usd": 0.0, "unknown_price": 2 },
                { "cost_usd": 0.5, "unknown_price": 2 },
                { "cost_usd": 0.0 },
                { "cost_usd": null },
            ],
        });
        tidy_costs(&mut told);
        assert_eq!(
            told.to_string(),
            r#"{"cost_usd":0.12,"sessions":[{"cost_usd":null,"unknown_price":2},{"cost_usd":0.5,"unknown_price":2},{"cost_usd":0.0},{"cost_usd":null}]}"#
        );
    }

    #[test]
    fn what_was_allowed_for_a_day_is_over_after_it() {
        let session = SessionId::new("r-1");
        let reached = |scope| BudgetReached::new(scope, BudgetUnit::Usd, 30.0, 25.0, 25.0);
        let at = Timestamp::from_seconds(1_794_744_000);
        let raised = |scope| RaisedBudgets {
            open: Vec::new(),
            raised: vec![Raised {
                session: Some(session.clone()),
                reached: reached(scope),
                at,
            }],
        };
        let limit = |scope, session: &SessionId, hours: u64| {
            let now = at.after(Duration::from_secs(hours * 3600));
            raised(scope).limit(scope, BudgetUnit::Usd, session, 25.0, now)
        };
        let other = SessionId::new("r-2");
        assert_eq!(limit(BudgetScope::Day, &session, 23), 55.0);
        assert_eq!(limit(BudgetScope::Day, &other, 23), 55.0);
        assert_eq!(limit(BudgetScope::Day, &session, 24), 25.0);
        assert_eq!(limit(BudgetScope::GatewayDay, &session, 0), 55.0);
        assert_eq!(
            limit(BudgetScope::GatewayDay, &session, 20),
            25.0,
            "the next day"
        );
        assert_eq!(limit(BudgetScope::Session, &other, 0), 25.0);
        assert_eq!(limit(BudgetScope::Run, &other, 999), 55.0);
        let run = raised(BudgetScope::Run);
        let tokens = run.limit(BudgetScope::Run, BudgetUnit::Tokens, &session, 9.0, at);
        assert_eq!(tokens, 9.0, "another unit");
    }
}
