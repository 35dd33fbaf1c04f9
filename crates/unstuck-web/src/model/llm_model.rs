//! Models with their prices, the ladders between them, and what may be spent.

use serde::Serialize;
use unstuck_core::decision::{self, ModelCatalog};
use utoipa::ToSchema;

use super::money::round_usd;

/// All models and ladders that are known.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Models {
    /// The models.
    pub models: Vec<Model>,
    /// The ladders.
    pub ladders: Vec<Ladder>,
}

impl From<&ModelCatalog> for Models {
    fn from(catalog: &ModelCatalog) -> Self {
        let ladder = |one: &decision::ModelLadder| Ladder {
            id: one.id.clone(),
            models: one.models.clone(),
        };
        Self {
            models: catalog.models.iter().map(Model::from).collect(),
            ladders: catalog.ladders.iter().map(ladder).collect(),
        }
    }
}

/// One model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The id by which the provider's API knows it.
    pub id: String,
    /// Who offers it.
    pub provider: String,
    /// The line it belongs to, across versions.
    pub family: Option<String>,
    /// How many tokens its context window holds, if known.
    pub context: Option<u64>,
    /// How many tokens it can write at most, if known.
    pub max_output: Option<u64>,
    /// What it costs, if known.
    pub price: Option<Price>,
    /// What it costs with a long prompt, if that differs.
    pub long_price: Option<LongContextPrice>,
    /// Other names for it.
    pub aliases: Vec<String>,
}

impl From<&decision::Model> for Model {
    fn from(model: &decision::Model) -> Self {
        Self {
            id: model.id.clone(),
            provider: model.provider.clone(),
            family: model.family.clone(),
            context: model.context,
            max_output: model.max_output,
            price: model.price.as_ref().map(|price| Price {
                input: price.input,
                output: price.output,
                cached: price.cached,
                as_of: price.as_of.clone(),
            }),
            long_price: model.long.as_ref().map(|price| LongContextPrice {
                above: price.above,
                input: price.input,
                output: price.output,
                cached: price.cached,
            }),
            aliases: model.aliases.clone(),
        }
    }
}

/// What a provider charges, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// For what is sent.
    pub input: f64,
    /// For what is written.
    pub output: f64,
    /// For what is sent again and was kept; null where unknown.
    pub cached: Option<f64>,
    /// The day on which the price was looked up.
    pub as_of: String,
}

/// What counts for a whole request whose prompt is long, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LongContextPrice {
    /// The prompt length, in tokens, above which it counts.
    pub above: u64,
    /// For what is sent; null where unknown.
    pub input: Option<f64>,
    /// For what is written; null where unknown.
    pub output: Option<f64>,
    /// For what is sent again and was kept; null where unknown.
    pub cached: Option<f64>,
}

/// Models from the cheapest to the most capable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ladder {
    /// What it is called in configuration.
    pub id: String,
    /// The model ids, the cheapest first.
    pub models: Vec<String>,
}

/// What may be spent, and what was spent of it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budgets {
    /// Each limit.
    pub budgets: Vec<BudgetResponse>,
    /// What all calls of today (UTC) cost, in USD.
    pub spent_today_usd: f64,
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetResponse {
    /// What it limits: `run`, `day`, `session` or `gateway_day`.
    pub id: String,
    /// Money, in USD; null where there is no limit.
    pub usd: Option<f64>,
    /// Tokens; null where there is no limit.
    pub tokens: Option<u64>,
    /// What was spent of it, in USD; null where it is one limit for each of many.
    pub spent_usd: Option<f64>,
}

impl Budgets {
    /// Limits, and what was spent today.
    pub fn new(budgets: Vec<BudgetResponse>, spent_today_usd: f64) -> Self {
        Self {
            budgets,
            spent_today_usd: round_usd(spent_today_usd),
        }
    }
}
