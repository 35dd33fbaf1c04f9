//! The usage of calls.

use unstuck_core::decision::TokenUsage;

/// The usage of calls, as far as their responses report it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CallUsage {
    /// The cost in USD; `None` if no price is known.
    pub cost_usd: Option<f64>,
    /// The tokens.
    pub tokens: Option<TokenUsage>,
}

impl CallUsage {
    /// Returns the sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            cost_usd: combine(self.cost_usd, other.cost_usd, |a, b| a + b),
            tokens: combine(self.tokens, other.tokens, sum_tokens),
        }
    }

    /// Returns the usage since an earlier state.
    pub fn since(self, before: Self) -> Self {
        let cost = self
            .cost_usd
            .map(|usd| usd - before.cost_usd.unwrap_or(0.0));
        let tokens = self.tokens.map(|now| {
            let before = before.tokens.unwrap_or_default();
            TokenUsage {
                input: now.input.saturating_sub(before.input),
                cached: now.cached.saturating_sub(before.cached),
                output: now.output.saturating_sub(before.output),
                requests: now.requests.saturating_sub(before.requests),
            }
        });
        Self {
            // An attempt without a call does not mean that it was free.
            cost_usd: cost.filter(|usd| *usd > 0.0),
            tokens: tokens.filter(|tokens| *tokens != TokenUsage::default()),
        }
    }
}

fn combine<T>(a: Option<T>, b: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(both(a, b)),
        (a, b) => a.or(b),
    }
}

/// Returns the sum of all tokens.
pub(crate) fn sum_tokens(a: TokenUsage, b: TokenUsage) -> TokenUsage {
    TokenUsage {
        input: a.input + b.input,
        cached: a.cached + b.cached,
        output: a.output + b.output,
        requests: a.requests + b.requests,
    }
}
