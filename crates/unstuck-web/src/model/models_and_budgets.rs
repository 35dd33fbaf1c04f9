//! Models with prices, ladders of models, and budgets.

use serde::Serialize;
use unstuck_core::decision::{self, ModelCatalog};
use utoipa::ToSchema;

use super::money::round_usd;

/// All known models and ladders.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Models {
    /// Models.
    pub models: Vec<Model>,
    /// Ladders.
    pub ladders: Vec<ModelLadderResponse>,
}

impl From<&ModelCatalog> for Models {
    fn from(catalog: &ModelCatalog) -> Self {
        let ladder = |one: &decision::ModelLadder| ModelLadderResponse {
            id: one.id.clone(),
            models: one.models.clone(),
        };
        Self {
            models: catalog.models.iter().map(Model::from).collect(),
            ladders: catalog.ladders.iter().map(ladder).collect(),
        }
    }
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Id in the provider's API.
    pub id: String,
    /// Provider.
    pub provider: String,
    /// Model family across versions.
    pub family: Option<String>,
    /// Context window in tokens, if known.
    pub context: Option<u64>,
    /// Maximum output in tokens, if known.
    pub max_output: Option<u64>,
    /// Price, if known.
    pub price: Option<Price>,
    /// Price for long prompts, if different.
    pub long_price: Option<LongContextPrice>,
    /// Aliases.
    pub aliases: Vec<String>,
}

impl From<&decision::CatalogModel> for Model {
    fn from(model: &decision::CatalogModel) -> Self {
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

/// A price in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// Price of input tokens.
    pub input: f64,
    /// Price of output tokens.
    pub output: f64,
    /// Price of cached input tokens; null if unknown.
    pub cached: Option<f64>,
    /// Date of the price.
    pub as_of: String,
}

/// The price of a whole request with a long prompt, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LongContextPrice {
    /// Prompt length in tokens above which it applies.
    pub above: u64,
    /// Price of input tokens; null if unknown.
    pub input: Option<f64>,
    /// Price of output tokens; null if unknown.
    pub output: Option<f64>,
    /// Price of cached input tokens; null if unknown.
    pub cached: Option<f64>,
}

/// Models from the cheapest to the most capable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelLadderResponse {
    /// Id in the configuration.
    pub id: String,
    /// Model ids, the cheapest first.
    pub models: Vec<String>,
}

/// All budgets and the amount spent today.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budgets {
    /// The budgets.
    pub budgets: Vec<BudgetResponse>,
    /// Cost of all calls today (UTC), in USD.
    pub spent_today_usd: f64,
}

/// A budget.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetResponse {
    /// Scope of the budget: `run`, `day`, `session` or `gateway_day`.
    pub id: String,
    /// Limit in USD; null if unlimited.
    pub usd: Option<f64>,
    /// Limit in tokens; null if unlimited.
    pub tokens: Option<u64>,
    /// Amount spent in USD; null if the budget applies to each of many.
    pub spent_usd: Option<f64>,
}

impl Budgets {
    /// Creates the response from the budgets and the amount spent today.
    pub fn new(budgets: Vec<BudgetResponse>, spent_today_usd: f64) -> Self {
        Self {
            budgets,
            spent_today_usd: round_usd(spent_today_usd),
        }
    }
}
