//! What may still be spent on a request, and whether somebody else's price fits into that.

use std::sync::Arc;

use unstuck_core::RetryPolicy;
use unstuck_core::decision::{Catalog, Tokens};

use super::unfit::Unfit;
use crate::spending::Left;

/// What may still be spent on a request.
pub(crate) struct Purse<'a> {
    /// What the budget has left that has the least; none where there is no budget.
    pub(crate) left: Option<Left>,
    pub(crate) policy: Arc<RetryPolicy>,
    /// What dearer models were estimated to cost more before, in USD.
    pub(crate) before: f64,
    /// How many tokens the request and its answer are expected to have.
    pub(crate) expected: Tokens,
    pub(crate) catalog: &'a Catalog,
}

impl Purse<'_> {
    /// Whether a model may be asked in the place of another one. An unknown price keeps nobody back: calls of such count
    /// nothing, and whoever named the upstream wants it asked.
    pub(crate) fn pays_instead(&self, own: Option<&str>, model: Option<&str>) -> Result<(), Unfit> {
        let Some(model) = model else {
            return Ok(());
        };
        self.pays(model)?;
        let Some(own) = own.filter(|own| *own != model) else {
            return Ok(());
        };
        let more = self.catalog.difference(own, model, self.expected).usd();
        match more {
            Some(more) if self.policy.confirms(self.before, Some(more)) => {
                Err(Unfit::Dearer { more })
            }
            _ => Ok(()),
        }
    }

    /// Whether a model's price fits into what is left.
    pub(crate) fn pays(&self, model: &str) -> Result<(), Unfit> {
        let Some(left) = self.left else {
            return Ok(());
        };
        let model = self.catalog.find(model);
        match model.and_then(|model| model.cost(self.expected)) {
            Some(price) if price > left.usd => Err(Unfit::Budget { price, left }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spending::Whose;

    /// A purse for a million tokens, with so much left.
    fn purse<'a>(left: f64, policy: &RetryPolicy, catalog: &'a Catalog) -> Purse<'a> {
        Purse {
            left: Some(Left {
                usd: left,
                whose: Whose::Session,
            }),
            policy: Arc::new(policy.clone()),
            before: 0.0,
            expected: Tokens {
                input: 1_000_000,
                ..Tokens::default()
            },
            catalog,
        }
    }

    /// S4-35: a fallback costs no more than is left.
    #[test]
    fn a_price_fits_into_what_is_left_or_nobody_is_asked() {
        let (policy, catalog) = (RetryPolicy::default(), Catalog::embedded());
        let sonnet = Some("claude-sonnet-5-5");
        let price = catalog.find("claude-sonnet-5-5").unwrap();
        let price = price.cost(purse(0.0, &policy, &catalog).expected).unwrap();
        let pays = |left| purse(left, &policy, &catalog).pays_instead(sonnet, sonnet);
        assert_eq!(pays(price), Ok(()));
        let refused = pays(price - 0.01).unwrap_err();
        assert!(matches!(refused, Unfit::Budget { .. }), "{refused}");
        let mut boundless = purse(0.0, &policy, &catalog);
        boundless.left = None;
        assert_eq!(boundless.pays_instead(sonnet, sonnet), Ok(()));
    }

    #[test]
    fn an_unknown_price_keeps_nobody_back() {
        let (policy, catalog) = (RetryPolicy::default(), Catalog::embedded());
        let purse = purse(0.01, &policy, &catalog);
        let pays = |own, model| purse.pays_instead(Some(own), Some(model));
        assert_eq!(pays("claude-sonnet-5-5", "inhouse"), Ok(()));
        assert_eq!(pays("inhouse", "other"), Ok(()));
        assert_eq!(purse.pays_instead(None, None), Ok(()));
    }

    /// S4-13: what a dearer model may cost more without a person's yes holds for a fallback, too.
    #[test]
    fn a_dearer_model_is_not_asked_without_a_yes() {
        let catalog = Catalog::embedded();
        let (cheap, dear) = ("claude-sonnet-5-5", "claude-opus-5-5");
        let pays = |policy: &RetryPolicy, before| {
            let mut purse = purse(1e6, policy, &catalog);
            purse.before = before;
            (
                purse.pays_instead(Some(cheap), Some(dear)).is_ok(),
                purse.pays_instead(Some(dear), Some(cheap)).is_ok(),
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
