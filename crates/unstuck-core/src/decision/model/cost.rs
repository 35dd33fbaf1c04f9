//! What a change of the model would cost, as an estimate with its formula.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::money::format_usd;
use crate::time::Timestamp;

use super::{Model, ModelCatalog};

/// How many tokens are expected, or were used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Sent anew.
    pub input: u64,
    /// Sent again and kept by the provider.
    pub cached: u64,
    /// Written by the model.
    pub output: u64,
    /// Over how many requests they are spread, which tells how long one prompt is; 0 counts as 1.
    #[serde(default)]
    pub requests: u64,
}

impl TokenUsage {
    /// How long one prompt is on average.
    fn average_prompt(self) -> u64 {
        self.input.saturating_add(self.cached) / self.requests.max(1)
    }

    /// How long the conversation is after a request, on average.
    pub fn average_conversation(self) -> u64 {
        self.average_prompt() + self.output / self.requests.max(1)
    }
}

/// The cost of reading a conversation again of which nothing is cached any more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RereadCost {
    /// How long it is, in tokens.
    pub tokens: u64,
    /// What reading it costs, in USD; null where the price is unknown.
    pub usd: Option<f64>,
}

impl fmt::Display for RereadCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = match self.tokens {
            count if count >= 10_000 => format!("{}k", count / 1000),
            count => count.to_string(),
        };
        match self.usd {
            Some(cost) => write!(
                f,
                "about {tokens} tokens are read again, {}",
                format_usd(cost)
            ),
            None => write!(f, "about {tokens} tokens are read again, price unknown"),
        }
    }
}

/// An amount of money that may not be known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimatedAmount {
    /// So many USD; negative where something becomes cheaper.
    Known(f64),
    /// It cannot be told.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// What something is expected to cost, and how that was worked out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostEstimate {
    /// How much.
    pub amount: EstimatedAmount,
    /// How it was worked out, for a person.
    pub formula: String,
}

impl CostEstimate {
    /// The amount in USD, if it is known.
    pub fn usd(&self) -> Option<f64> {
        match self.amount {
            EstimatedAmount::Known(usd) => Some(usd),
            EstimatedAmount::Unknown { .. } => None,
        }
    }

    /// The sum over tokens of each sort: its name, how many, the new and the old price per million.
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
            return Self::unknown("the expected tokens are unknown".into());
        }
        Self {
            amount: EstimatedAmount::Known(usd),
            formula,
        }
    }

    fn unknown(why: String) -> Self {
        Self {
            formula: format!("not estimated: {why}"),
            amount: EstimatedAmount::Unknown { why },
        }
    }
}

/// What one million tokens cost in a given request: input, cached input, output.
struct TokenRates {
    input: f64,
    cached: f64,
    output: f64,
}

impl Model {
    /// What a request costs, in USD; `None` where a price that counts is unknown.
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
        // A cached price matters only if something is cached; then an unknown one makes the sum unknown.
        let cached = if tokens.cached == 0 { 0.0 } else { cached? };
        Some(TokenRates {
            input,
            cached,
            output,
        })
    }
}

impl ModelCatalog {
    /// What it costs to read so many tokens again with this model, none of them cached.
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

    /// What the expected tokens cost more with one model than with another.
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

/// Why a session changed its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelSwitchReason {
    /// A person asked for it.
    Manual,
    /// Retries ran out.
    AutoAfterRetries,
    /// The conversation no longer fitted.
    ContextLimit,
}

/// One change of a session's model, as the REST API and the session stream tell it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSwitch {
    /// The model before.
    pub from_model: String,
    /// The model after.
    pub to_model: String,
    /// Why.
    pub reason: ModelSwitchReason,
    /// When.
    pub timestamp: Timestamp,
    /// What it is expected to cost more, in USD; null where a price is unknown.
    pub cost_estimate: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4-13: expected tokens times the difference of the prices, of input and output alike.
    #[test]
    fn an_estimate_counts_input_cache_and_output_and_shows_its_formula() {
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
    fn a_long_prompt_is_charged_by_its_own_price() {
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
        assert_eq!(astra.cost(long), None, "dearer, but not known by how much");
    }

    #[test]
    fn an_unknown_price_is_said_to_be_unknown() {
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
    fn a_conversation_that_is_read_again_costs_the_price_of_new_input() {
        let catalog = ModelCatalog::embedded();
        let known = catalog.reread_cost(Some("claude-opus-5-5"), 150_000);
        assert_eq!(known.usd, Some(0.6));
        assert_eq!(known.to_string(), "about 150k tokens are read again, $0.60");
        let unknown = catalog.reread_cost(Some("local-large"), 9_000);
        assert_eq!(
            serde_json::to_value(unknown).unwrap()["usd"],
            serde_json::Value::Null
        );
        assert_eq!(
            unknown.to_string(),
            "about 9000 tokens are read again, price unknown"
        );
        assert_eq!(catalog.reread_cost(None, 9_000), unknown);
    }

    /// S4-21: the record of a change of the model.
    #[test]
    fn an_escalation_record_has_the_agreed_names() {
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
