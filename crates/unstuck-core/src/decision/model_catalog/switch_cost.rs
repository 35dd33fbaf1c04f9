//! Cost estimates of model switches, with their formulas.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::money::format_usd;
use crate::time::Timestamp;

use super::{CatalogModel, ModelCatalog};

/// An expected or actual number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Uncached input.
    pub input: u64,
    /// Cached input.
    pub cached: u64,
    /// Output.
    pub output: u64,
    /// The number of requests, which determines the average prompt length; 0 is treated as 1.
    #[serde(default)]
    pub requests: u64,
}

impl TokenUsage {
    /// Returns the average prompt length.
    fn average_prompt(self) -> u64 {
        self.input.saturating_add(self.cached) / self.requests.max(1)
    }

    /// Returns the average length of the conversation after a request.
    pub fn average_conversation(self) -> u64 {
        self.average_prompt() + self.output / self.requests.max(1)
    }
}

/// The cost of rereading a conversation that is no longer cached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RereadCost {
    /// The length of the conversation in tokens.
    pub tokens: u64,
    /// The cost of reading it in USD; null if the price is unknown.
    pub usd: Option<f64>,
}

impl fmt::Display for RereadCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = match self.tokens {
            count if count >= 10_000 => format!("{}k", count / 1000),
            count => count.to_string(),
        };
        match self.usd {
            Some(cost) => write!(f, "about {tokens} tokens are re-read, {}", format_usd(cost)),
            None => write!(f, "about {tokens} tokens are re-read, price unknown"),
        }
    }
}

/// An amount of money that may be unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PossiblyUnknownAmount {
    /// An amount in USD; negative if it becomes cheaper.
    Known(f64),
    /// Unknown.
    Unknown {
        /// The reason.
        why: String,
    },
}

/// A cost estimate with its formula.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostEstimate {
    /// The amount.
    pub amount: PossiblyUnknownAmount,
    /// The formula, for humans.
    pub formula: String,
}

impl CostEstimate {
    /// Returns the amount in USD, if it is known.
    pub fn usd(&self) -> Option<f64> {
        match self.amount {
            PossiblyUnknownAmount::Known(usd) => Some(usd),
            PossiblyUnknownAmount::Unknown { .. } => None,
        }
    }

    /// Sums up the parts: name, number of tokens, new and old price per million.
    fn from_parts(parts: &[(&str, u64, f64, f64)]) -> Self {
        let mut usd = 0.0;
        let mut formula = String::new();
        for (name, count, new, old) in parts.iter().filter(|part| part.1 > 0) {
            usd += *count as f64 * (new - old) / 1e6;
            let plus = if formula.is_empty() { "" } else { " + " };
            let _ = write!(
                formula,
                "{plus}{count} {name} tokens × ({new} - {old}) USD per million"
            );
        }
        if formula.is_empty() {
            return Self::unknown("the expected token usage is unknown".into());
        }
        Self {
            amount: PossiblyUnknownAmount::Known(usd),
            formula,
        }
    }

    fn unknown(why: String) -> Self {
        Self {
            formula: format!("not estimated: {why}"),
            amount: PossiblyUnknownAmount::Unknown { why },
        }
    }
}

/// The prices per million tokens of a request: input, cached input, output.
struct TokenRates {
    input: f64,
    cached: f64,
    output: f64,
}

impl CatalogModel {
    /// Returns the cost of a request in USD; `None` if a needed price is unknown.
    pub fn cost(&self, tokens: TokenUsage) -> Option<f64> {
        let rates = self.rates(tokens)?;
        let sum = tokens.input as f64 * rates.input
            + tokens.cached as f64 * rates.cached
            + tokens.output as f64 * rates.output;
        Some(sum / 1e6)
    }

    fn rates(&self, tokens: TokenUsage) -> Option<TokenRates> {
        let price = self.price.as_ref()?;
        let long = self.long.as_ref();
        let long = long.filter(|long| tokens.average_prompt() > long.above);
        let (input, cached, output) = match long {
            Some(long) => (long.input?, long.cached, long.output?),
            None => (price.input, price.cached, price.output),
        };
        // A cached price matters only if there is cached input; then an unknown one makes the sum unknown.
        let cached = if tokens.cached == 0 { 0.0 } else { cached? };
        Some(TokenRates {
            input,
            cached,
            output,
        })
    }
}

impl ModelCatalog {
    /// Returns the cost of reading this many tokens with the model, none of them cached.
    pub fn reread_cost(&self, model: Option<&str>, tokens: u64) -> RereadCost {
        let request = TokenUsage {
            input: tokens,
            requests: 1,
            ..TokenUsage::default()
        };
        let model = model.and_then(|name| self.find(name));
        RereadCost {
            tokens,
            usd: model.and_then(|model| model.cost(request)),
        }
    }

    /// Returns the extra cost of the expected tokens with another model.
    pub fn cost_difference(&self, from: &str, to: &str, tokens: TokenUsage) -> CostEstimate {
        let rates = |name: &str| {
            let model = self.find(name).and_then(|model| model.rates(tokens));
            model.ok_or_else(|| format!("the price of {name} is unknown"))
        };
        let (old, new) = match (rates(from), rates(to)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(why), _) | (_, Err(why)) => return CostEstimate::unknown(why),
        };
        let parts = [
            ("input", tokens.input, new.input, old.input),
            ("cached", tokens.cached, new.cached, old.cached),
            ("output", tokens.output, new.output, old.output),
        ];
        CostEstimate::from_parts(&parts)
    }
}

/// The reason of a model switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelSwitchReason {
    /// Requested by a human.
    Manual,
    /// Retries were exhausted.
    AutoAfterRetries,
    /// The conversation exceeded the context window.
    ContextLimit,
}

/// A model switch in the form of the REST API and the session stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSwitch {
    /// The model before.
    pub from_model: String,
    /// The model after.
    pub to_model: String,
    /// The reason.
    pub reason: ModelSwitchReason,
    /// The time.
    pub timestamp: Timestamp,
    /// The expected extra cost in USD; null if a price is unknown.
    pub cost_estimate: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4-13: expected tokens times the difference of the prices, for input and output.
    #[test]
    fn an_estimate_includes_input_cache_and_output_and_shows_its_formula() {
        let tokens = TokenUsage {
            input: 1_000_000,
            cached: 2_000_000,
            output: 100_000,
            requests: 30,
        };
        let catalog = ModelCatalog::embedded();
        let estimate = catalog.cost_difference("claude-sonnet-5-5", "claude-opus-5-5", tokens);
        let usd = estimate.usd().unwrap();
        assert!((usd - 3.0).abs() < 1e-9, "{usd}");
        assert_eq!(
            estimate.formula,
            "1000000 input tokens × (4 - 2) USD per million \
             + 2000000 cached tokens × (0.2 - 0.2) USD per million \
             + 100000 output tokens × (20 - 10) USD per million"
        );
    }

    #[test]
    fn a_long_prompt_has_its_own_price() {
        let catalog = ModelCatalog::embedded();
        let haiku = catalog.find("claude-haiku-5-5").unwrap();
        let cost = |input, requests| {
            let tokens = TokenUsage {
                input,
                requests,
                ..TokenUsage::default()
            };
            haiku.cost(tokens).unwrap()
        };
        assert!((cost(100_000, 1) - 0.01).abs() < 1e-9);
        assert!((cost(200_000, 1) - 0.10).abs() < 1e-9);
        assert!((cost(200_000, 2) - 0.02).abs() < 1e-9);
        let astra = catalog.find("gpt-6-astra").unwrap();
        let long = TokenUsage {
            input: 300_000,
            ..TokenUsage::default()
        };
        assert_eq!(
            astra.cost(long),
            None,
            "more expensive, but the difference is unknown"
        );
    }

    #[test]
    fn an_unknown_price_is_reported_as_unknown() {
        let tokens = TokenUsage {
            output: 10,
            ..TokenUsage::default()
        };
        let catalog = ModelCatalog::embedded();
        let estimate = catalog.cost_difference("claude-sonnet-5-5", "local-large", tokens);
        assert_eq!(estimate.usd(), None);
        assert_eq!(
            estimate.formula,
            "not estimated: the price of local-large is unknown"
        );
        let cached = TokenUsage {
            cached: 10,
            ..tokens
        };
        let fable = catalog.cost_difference("claude-opus-5-5", "claude-fable-5-2", cached);
        assert_eq!(fable.usd(), None);
    }

    #[test]
    fn rereading_a_conversation_costs_the_price_of_uncached_input() {
        let catalog = ModelCatalog::embedded();
        let known = catalog.reread_cost(Some("claude-opus-5-5"), 150_000);
        assert_eq!(known.usd, Some(0.6));
        assert_eq!(known.to_string(), "about 150k tokens are re-read, $0.60");
        let unknown = catalog.reread_cost(Some("local-large"), 9_000);
        assert_eq!(
            serde_json::to_value(unknown).unwrap()["usd"],
            serde_json::Value::Null
        );
        assert_eq!(
            unknown.to_string(),
            "about 9000 tokens are re-read, price unknown"
        );
        assert_eq!(catalog.reread_cost(None, 9_000), unknown);
    }

    /// S4-21: the record of a model switch.
    #[test]
    fn a_model_switch_has_the_agreed_names() {
        let record = ModelSwitch {
            from_model: "a".into(),
            to_model: "b".into(),
            reason: ModelSwitchReason::AutoAfterRetries,
            timestamp: Timestamp::from_seconds(1_794_777_000),
            cost_estimate: Some(0.5),
        };
        assert_eq!(
            serde_json::to_value(&record).unwrap(),
            serde_json::json!({
                "fromModel": "a", "toModel": "b", "reason": "auto_after_retries",
                "timestamp": "2026-11-15T21:10:00Z", "costEstimate": 0.5
            })
        );
    }
}
