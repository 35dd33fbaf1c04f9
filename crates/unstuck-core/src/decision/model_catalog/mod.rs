//! The model catalog: context sizes, prices and ladders (`data/models.toml`).

mod model_name;
mod switch_cost;

pub use switch_cost::{
    CostEstimate, ModelSwitch, ModelSwitchReason, PossiblyUnknownAmount, RereadCost, TokenUsage,
};

use serde::{Deserialize, Serialize};

use crate::knowledge::ReplacementModelChoice;

use model_name::ModelName;

/// The price of a model, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cached input; unknown if absent.
    pub cached: Option<f64>,
    /// The day of the price lookup.
    pub as_of: String,
}

/// The price of a whole request with a long prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPromptPrice {
    /// The prompt length in tokens above which it applies.
    pub above: u64,
    /// Input; unknown if absent.
    pub input: Option<f64>,
    /// Output; unknown if absent.
    pub output: Option<f64>,
    /// Cached input; unknown if absent.
    pub cached: Option<f64>,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogModel {
    /// The id in the provider's API.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// The family, across versions.
    pub family: Option<String>,
    /// The context window in tokens, if known.
    pub context: Option<u64>,
    /// The maximum output in tokens, if known.
    pub max_output: Option<u64>,
    /// The price, if known.
    pub price: Option<Price>,
    /// The price with a long prompt, if it differs.
    pub long: Option<LongPromptPrice>,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
}

impl CatalogModel {
    fn has_name(&self, name: ModelName<'_>) -> bool {
        name.is_same_model(&self.id) || self.aliases.iter().any(|alias| name.is_same_model(alias))
    }

    fn output_price(&self) -> Option<f64> {
        self.price.as_ref().map(|price| price.output)
    }
}

/// A ladder of models, from the cheapest to the most capable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelLadder {
    /// The id in the configuration.
    pub id: String,
    /// The model ids, cheapest first.
    pub models: Vec<String>,
}

/// The catalog of all known models and ladders.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCatalog {
    /// The models.
    #[serde(default, rename = "model")]
    pub models: Vec<CatalogModel>,
    /// The ladders.
    #[serde(default, rename = "ladder")]
    pub ladders: Vec<ModelLadder>,
}

/// The reason why there is no model to switch to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModelSwitchTargetError {
    /// The model is the last one of its ladder.
    #[error("already at the most capable model of the ladder")]
    AtTheTop,
    /// The model is not on a ladder.
    #[error("the model is not on a ladder")]
    NotOnALadder,
    /// The model is unknown.
    #[error("the model is unknown")]
    Unknown,
    /// No model has a larger context window.
    #[error("no known model of this provider has a larger context window")]
    NoneLarger,
    /// There is no similar model.
    #[error("no known model of this provider costs about the same")]
    NoSibling,
}

impl ModelCatalog {
    /// Parses a catalog in the format of `data/models.toml`.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns the embedded catalog.
    ///
    /// A test ensures that it can be parsed; otherwise it would be empty.
    pub fn embedded() -> Self {
        Self::parse(include_str!("../../../data/models.toml")).unwrap_or_default()
    }

    /// Adds a model, or replaces the one with the same id.
    #[must_use]
    pub fn with(mut self, model: CatalogModel) -> Self {
        match self.models.iter_mut().find(|known| known.id == model.id) {
            Some(known) => *known = model,
            // Of two models with the same alias the added one is used.
            None => self.models.insert(0, model),
        }
        self
    }

    /// Adds a ladder before the others, or replaces the one with the same id.
    #[must_use]
    pub fn with_ladder(mut self, ladder: ModelLadder) -> Self {
        match self.ladders.iter_mut().find(|known| known.id == ladder.id) {
            Some(known) => *known = ladder,
            None => self.ladders.insert(0, ladder),
        }
        self
    }

    /// Returns the model with this name, in any spelling.
    pub fn find(&self, name: &str) -> Option<&CatalogModel> {
        let exact = self.models.iter().find(|model| model.id == name);
        let name = ModelName::parse(name);
        exact.or_else(|| self.models.iter().find(|model| model.has_name(name)))
    }

    /// Returns the model to switch to, chosen as the strategy says.
    pub fn choose(
        &self,
        from: &str,
        choice: ReplacementModelChoice,
    ) -> Result<&str, ModelSwitchTargetError> {
        match choice {
            ReplacementModelChoice::Next => self.next_model(from),
            ReplacementModelChoice::LargerContext => self.larger_context(from),
            ReplacementModelChoice::Sibling => self.sibling(from),
        }
    }

    /// Returns the next model up the ladder.
    ///
    /// A model that is not on a ladder has the position of another one of its family.
    pub fn next_model(&self, from: &str) -> Result<&str, ModelSwitchTargetError> {
        let (name, model) = (ModelName::parse(from), self.find(from));
        let named = |id: &str| name.is_same_model(id) || model.is_some_and(|model| model.id == id);
        let related = |id: &str| {
            let family = model.and_then(|model| model.family.as_deref());
            family.is_some() && self.find(id).and_then(|other| other.family.as_deref()) == family
        };
        let (ladder, rung) = self
            .ladder_position(named)
            .or_else(|| self.ladder_position(related))
            .ok_or(ModelSwitchTargetError::NotOnALadder)?;
        let next = ladder
            .models
            .get(rung + 1)
            .ok_or(ModelSwitchTargetError::AtTheTop)?;
        Ok(next)
    }

    /// Returns a model of the same provider with a larger context window: of the same family if there is one, otherwise
    /// the cheapest that does not cost less, since a cheaper one is usually weaker.
    pub fn larger_context(&self, from: &str) -> Result<&str, ModelSwitchTargetError> {
        let model = self.find(from).ok_or(ModelSwitchTargetError::Unknown)?;
        let room = model.context.ok_or(ModelSwitchTargetError::Unknown)?;
        let own = model.output_price().unwrap_or(0.0);
        let rank = |other: &CatalogModel| {
            let price = other.output_price().unwrap_or(f64::INFINITY);
            let related = other.family.is_some() && other.family == model.family;
            (!related, price < own, price)
        };
        let before = |a: &CatalogModel, b: &CatalogModel| {
            let (a, b) = (rank(a), rank(b));
            (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2))
        };
        self.other_models(model)
            .filter(|other| other.context.is_some_and(|context| context > room))
            .min_by(|a, b| before(a, b))
            .map(|other| &*other.id)
            .ok_or(ModelSwitchTargetError::NoneLarger)
    }

    /// Returns the model of the same provider with the nearest price, within half to double.
    pub fn sibling(&self, from: &str) -> Result<&str, ModelSwitchTargetError> {
        let model = self.find(from).ok_or(ModelSwitchTargetError::Unknown)?;
        let own = model
            .output_price()
            .ok_or(ModelSwitchTargetError::NoSibling)?;
        let off = |other: &CatalogModel| {
            let ratio = other
                .output_price()
                .map_or(f64::INFINITY, |price| price / own);
            ratio.log2().abs()
        };
        self.other_models(model)
            .filter(|other| off(other) <= 1.0)
            .min_by(|a, b| off(a).total_cmp(&off(b)))
            .map(|other| &*other.id)
            .ok_or(ModelSwitchTargetError::NoSibling)
    }

    fn other_models(&self, model: &CatalogModel) -> impl Iterator<Item = &CatalogModel> {
        let (id, provider) = (model.id.clone(), model.provider.clone());
        self.models
            .iter()
            .filter(move |other| other.provider == provider && other.id != id)
    }

    fn ladder_position(&self, is: impl Fn(&str) -> bool) -> Option<(&ModelLadder, usize)> {
        self.ladders.iter().find_map(|ladder| {
            let rung = ladder.models.iter().position(|id| is(id))?;
            Some((ladder, rung))
        })
    }
}

#[cfg(test)]
mod tests;
