//! Reasons why an upstream is not eligible as a fallback.

use std::fmt;

use thiserror::Error;

use crate::spending::BudgetRemaining;

/// The reason why an upstream is not eligible as a fallback.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub(crate) enum FallbackIneligibility {
    #[error(
        "the context window of {context_size} tokens is too small for the request (about {tokens})"
    )]
    Context { context_size: u64, tokens: u64 },
    #[error("not known to have a larger context window")]
    NoLargerContext,
    #[error("cannot call tools, which the request requires")]
    Tools,
    #[error("cannot read images, which the request contains")]
    Vision,
    #[error("cannot continue a prefilled response")]
    Prefill,
    #[error("would cost about {}; {} left in {}", Usd(*price), Usd(remaining.usd), remaining.owner)]
    Budget {
        price: f64,
        remaining: BudgetRemaining,
    },
    #[error("would cost about {} more; exceeds confirmAbove", Usd(*extra_cost))]
    MoreExpensive { extra_cost: f64 },
}

/// An amount of money; small amounts keep enough digits not to look like zero.
struct Usd(f64);

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            usd if usd > 0.0 && usd < 0.01 => write!(f, "${usd:.6}"),
            usd => write!(f, "${:.2}", usd.max(0.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spending::BudgetOwner;

    #[test]
    fn small_amounts_do_not_look_like_zero() {
        let left = BudgetRemaining {
            usd: 0.25,
            owner: BudgetOwner::Day,
        };
        let told = FallbackIneligibility::Budget {
            price: 1.5,
            remaining: left,
        }
        .to_string();
        assert_eq!(told, "would cost about $1.50; $0.25 left in today's budget");
        assert_eq!(Usd(0.000_4).to_string(), "$0.000400");
        assert_eq!(Usd(-3.0).to_string(), "$0.00");
    }
}
