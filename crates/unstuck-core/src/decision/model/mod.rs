//! Models: what each can hold and costs, and which is the next one up (`data/models.toml`).

mod cost;
mod model_name;

pub use cost::{
    CostEstimate, EstimatedAmount, ModelSwitch, ModelSwitchReason, RereadCost, TokenUsage,
};

use serde::{Deserialize, Serialize};

use crate::knowledge::ModelChoice;

use model_name::ModelName;

/// What a provider charges, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// For what is sent.
    pub input: f64,
    /// For what is written.
    pub output: f64,
    /// For what is sent again and was kept; unknown where left out.
    pub cached: Option<f64>,
    /// The day on which the price was looked up.
    pub as_of: String,
}

/// What counts for a whole request whose prompt is long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPromptPrice {
    /// The prompt length, in tokens, above which it counts.
    pub above: u64,
    /// For what is sent; unknown where left out.
    pub input: Option<f64>,
    /// For what is written; unknown where left out.
    pub output: Option<f64>,
    /// For what is sent again and was kept; unknown where left out.
    pub cached: Option<f64>,
}

/// One model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    pub long: Option<LongPromptPrice>,
    /// Other names for it.
    #[serde(default)]
    pub aliases: Vec<String>,
}

impl Model {
    fn has_name(&self, name: ModelName<'_>) -> bool {
        name.is_same_model(&self.id) || self.aliases.iter().any(|alias| name.is_same_model(alias))
    }

    fn output_price(&self) -> Option<f64> {
        self.price.as_ref().map(|price| price.output)
    }
}

/// Models from the cheapest to the most capable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelLadder {
    /// What it is called in configuration.
    pub id: String,
    /// The model ids, the cheapest first.
    pub models: Vec<String>,
}

/// All models and ladders that are known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCatalog {
    /// The models.
    #[serde(default, rename = "model")]
    pub models: Vec<Model>,
    /// The ladders.
    #[serde(default, rename = "ladder")]
    pub ladders: Vec<ModelLadder>,
}

/// Why there is no other model to change to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModelChoiceError {
    /// The model is the last of its ladder.
    #[error("already at the most capable model of the ladder")]
    AtTheTop,
    /// The model is on no ladder.
    #[error("the model is on no ladder")]
    NotOnALadder,
    /// Nothing is known about the model.
    #[error("nothing is known about this model")]
    Unknown,
    /// No model has more room.
    #[error("no known model of this provider has a larger context window")]
    NoneLarger,
    /// No model is alike.
    #[error("no known model of this provider costs about the same")]
    NoSibling,
}

impl ModelCatalog {
    /// Reads a catalog in the form of `data/models.toml`.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The catalog that comes with the program.
    ///
    /// A test makes sure that it can be read; an unreadable one would be empty.
    pub fn embedded() -> Self {
        Self::parse(include_str!("../../../data/models.toml")).unwrap_or_default()
    }

    /// These models and one more, which replaces one of the same id.
    #[must_use]
    pub fn with(mut self, model: Model) -> Self {
        match self.models.iter_mut().find(|known| known.id == model.id) {
            Some(known) => *known = model,
            // Of two with the same alias the added one counts.
            None => self.models.insert(0, model),
        }
        self
    }

    /// These ladders and one more, which replaces one of the same id, or counts before the others.
    #[must_use]
    pub fn with_ladder(mut self, ladder: ModelLadder) -> Self {
        match self.ladders.iter_mut().find(|known| known.id == ladder.id) {
            Some(known) => *known = ladder,
            None => self.ladders.insert(0, ladder),
        }
        self
    }

    /// The model that a name means, in any of its spellings.
    pub fn find(&self, name: &str) -> Option<&Model> {
        let exact = self.models.iter().find(|model| model.id == name);
        let name = ModelName::parse(name);
        exact.or_else(|| self.models.iter().find(|model| model.has_name(name)))
    }

    /// The model to change to, chosen as the strategy says.
    pub fn choose(&self, from: &str, choice: ModelChoice) -> Result<&str, ModelChoiceError> {
        match choice {
            ModelChoice::Next => self.next_model(from),
            ModelChoice::LargerContext => self.larger_context(from),
            ModelChoice::Sibling => self.sibling(from),
        }
    }

    /// The next model up the ladder.
    ///
    /// A model that is on no ladder stands where one of its family stands.
    pub fn next_model(&self, from: &str) -> Result<&str, ModelChoiceError> {
        let (name, model) = (ModelName::parse(from), self.find(from));
        let named = |id: &str| name.is_same_model(id) || model.is_some_and(|model| model.id == id);
        let related = |id: &str| {
            let family = model.and_then(|model| model.family.as_deref());
            family.is_some() && self.find(id).and_then(|other| other.family.as_deref()) == family
        };
        let (ladder, rung) = self
            .ladder_position(named)
            .or_else(|| self.ladder_position(related))
            .ok_or(ModelChoiceError::NotOnALadder)?;
        let next = ladder
            .models
            .get(rung + 1)
            .ok_or(ModelChoiceError::AtTheTop)?;
        Ok(next)
    }

    /// A model of the same provider with a larger context window: of the same family if there is one, else
    /// the cheapest that does not cost less, since a cheaper one is as a rule the weaker one.
    pub fn larger_context(&self, from: &str) -> Result<&str, ModelChoiceError> {
        let model = self.find(from).ok_or(ModelChoiceError::Unknown)?;
        let room = model.context.ok_or(ModelChoiceError::Unknown)?;
        let own = model.output_price().unwrap_or(0.0);
        let rank = |other: &Model| {
            let price = other.output_price().unwrap_or(f64::INFINITY);
            let related = other.family.is_some() && other.family == model.family;
            (!related, price < own, price)
        };
        let before = |a: &Model, b: &Model| {
            let (a, b) = (rank(a), rank(b));
            (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2))
        };
        self.other_models(model)
            .filter(|other| other.context.is_some_and(|context| context > room))
            .min_by(|a, b| before(a, b))
            .map(|other| &*other.id)
            .ok_or(ModelChoiceError::NoneLarger)
    }

    /// The model of the same provider whose price is nearest, within half to double.
    pub fn sibling(&self, from: &str) -> Result<&str, ModelChoiceError> {
        let model = self.find(from).ok_or(ModelChoiceError::Unknown)?;
        let own = model.output_price().ok_or(ModelChoiceError::NoSibling)?;
        let off = |other: &Model| {
            let ratio = other
                .output_price()
                .map_or(f64::INFINITY, |price| price / own);
            ratio.log2().abs()
        };
        self.other_models(model)
            .filter(|other| off(other) <= 1.0)
            .min_by(|a, b| off(a).total_cmp(&off(b)))
            .map(|other| &*other.id)
            .ok_or(ModelChoiceError::NoSibling)
    }

    fn other_models(&self, model: &Model) -> impl Iterator<Item = &Model> {
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
