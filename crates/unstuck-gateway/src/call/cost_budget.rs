//! The remaining budget of a request and the price check for fallbacks.

use std::sync::Arc;

use unstuck_core::RetryPolicy;
use unstuck_core::decision::{ModelCatalog, TokenUsage};

use super::fallback_ineligibility::FallbackIneligibility;
use crate::spending::BudgetRemaining;

/// The remaining budget of a request.
pub(crate) struct CallBudget<'a> {
    /// The tightest remaining budget; `None` without a budget.
    pub(crate) remaining: Option<BudgetRemaining>,
    pub(crate) policy: Arc<RetryPolicy>,
    /// The estimated extra cost of more expensive models so far, in USD.
    pub(crate) extra_spent: f64,
    /// The expected tokens of the request and its response.
    pub(crate) expected: TokenUsage,
    pub(crate) catalog: &'a ModelCatalog,
}

impl CallBudget<'_> {
    /// Checks whether a model may replace another one. An unknown price is no obstacle: such calls count as free, and
    /// the upstream was configured on purpose.
    pub(crate) fn check_fallback(
        &self,
        own: Option<&str>,
        model: Option<&str>,
    ) -> Result<(), FallbackIneligibility> {
        let Some(model) = model else {
            return Ok(());
        };
        self.check_model(model)?;
        let Some(own) = own.filter(|own| *own != model) else {
            return Ok(());
        };
        let more = self
            .catalog
            .cost_difference(own, model, self.expected)
            .usd();
        match more {
            Some(more)
                if self
                    .policy
                    .needs_cost_confirmation(self.extra_spent, Some(more)) =>
            {
                Err(FallbackIneligibility::MoreExpensive { extra_cost: more })
            }
            _ => Ok(()),
        }
    }

    /// Checks whether a model's price fits the remaining budget.
    pub(crate) fn check_model(&self, model: &str) -> Result<(), FallbackIneligibility> {
        let Some(left) = self.remaining else {
            return Ok(());
        };
        let model = self.catalog.find(model);
        match model.and_then(|model| model.cost(self.expected)) {
            Some(price) if price > left.usd => Err(FallbackIneligibility::Budget {
                price,
                remaining: left,
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spending::BudgetOwner;

    /// Returns a budget for a million tokens with the given amount left.
    fn purse<'a>(left: f64, policy: &RetryPolicy, catalog: &'a ModelCatalog) -> CallBudget<'a> {
        CallBudget {
            remaining: Some(BudgetRemaining {
                usd: left,
                owner: BudgetOwner::Session,
            }),
            policy: Arc::new(policy.clone()),
            extra_spent: 0.0,
            expected: TokenUsage {
                input: 1_000_000,
                ..TokenUsage::default()
            },
            catalog,
        }
    }

    /// S4-35: a fallback costs no more than what is left.
    #[test]
    fn fallback_over_remaining_budget_is_rejected() {
        let (policy, catalog) = (RetryPolicy::default(), ModelCatalog::embedded());
        let sonnet = Some("claude-sonnet-5-5");
        let price = catalog.find("claude-sonnet-5-5").unwrap();
        let price = price.cost(purse(0.0, &policy, &catalog).expected).unwrap();
        let pays = |left| purse(left, &policy, &catalog).check_fallback(sonnet, sonnet);
        assert_eq!(pays(price), Ok(()));
        let refused = pays(price - 0.01).unwrap_err();
        assert!(
            matches!(refused, FallbackIneligibility::Budget { .. }),
            "{refused}"
        );
        let mut boundless = purse(0.0, &policy, &catalog);
        boundless.remaining = None;
        assert_eq!(boundless.check_fallback(sonnet, sonnet), Ok(()));
    }

    #[test]
    fn unknown_price_is_accepted() {
        let (policy, catalog) = (RetryPolicy::default(), ModelCatalog::embedded());
        let purse = purse(0.01, &policy, &catalog);
        let pays = |own, model| purse.check_fallback(Some(own), Some(model));
        assert_eq!(pays("claude-sonnet-5-5", "inhouse"), Ok(()));
        assert_eq!(pays("inhouse", "other"), Ok(()));
        assert_eq!(purse.check_fallback(None, None), Ok(()));
    }

    /// S4-13: the limit for extra cost without approval also applies to a fallback.
    #[test]
    fn more_expensive_model_needs_approval() {
        let catalog = ModelCatalog::embedded();
        let (cheap, dear) = ("claude-sonnet-5-5", "claude-opus-5-5");
        let pays = |policy: &RetryPolicy, before| {
            let mut purse = purse(1e6, policy, &catalog);
            purse.extra_spent = before;
            (
                purse.check_fallback(Some(cheap), Some(dear)).is_ok(),
                purse.check_fallback(Some(dear), Some(cheap)).is_ok(),
            )
        };
        let mut policy = RetryPolicy {
            confirm_above: Some(2.0),
            ..RetryPolicy::default()
        };
        assert_eq!(pays(&policy, 0.0), (true, true), "2 USD more");
        assert_eq!(pays(&policy, 0.5), (false, true), "2.5 USD more in all");
        policy.confirm_above = None;
        assert_eq!(pays(&policy, 100.0), (true, true));
    }
}
