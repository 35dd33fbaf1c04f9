//! All that is known about one kind (`data/kinds/<kind>.toml`).

use std::sync::Arc;

use serde::Deserialize;

use crate::agent::Agents;
use crate::failure::{Category, Failure, FailureRecord, Kind, Layer, Level};

use super::RuleSpec;

/// All that is known about one kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindKnowledge {
    /// What it is called in a heading.
    pub title: String,
    /// What a person can do about it.
    #[serde(default)]
    pub hint: String,
    /// What a person can do about it where an agent has a command of its own for signing in, as `{login}`.
    pub login_hint: Option<String>,
    /// The level at which recovery starts; by default that of the category.
    pub level: Option<Level>,
    /// What holds for failures of LLM API calls.
    #[serde(default)]
    pub api: LayerDefaults,
    /// What holds for failures of tool calls.
    #[serde(default)]
    pub tool: LayerDefaults,
    /// What holds for failures of agent processes.
    #[serde(default)]
    pub agent: LayerDefaults,
    /// What holds for failures of the environment.
    #[serde(default)]
    pub infra: LayerDefaults,
    /// The ways to recover, in the given priority.
    #[serde(default)]
    pub chain: Vec<ChainEntry>,
    /// Whether a repair that fits and may run comes before the first plain retry, also where the kind passes by itself.
    #[serde(default)]
    pub repair_first: bool,
    /// The kind that it becomes when it states a long wait.
    pub long_wait: Option<LongWaitKind>,
    /// How it is recognised.
    #[serde(default)]
    pub rule: Vec<Arc<RuleSpec>>,
    /// Failures that must be diagnosed as this kind.
    #[serde(default)]
    pub sample: Vec<FailureRecord>,
    /// Failures that look like this kind and must not be diagnosed as it.
    #[serde(default)]
    pub decoy: Vec<FailureRecord>,
}

impl KindKnowledge {
    /// The level at which recovery of this kind starts in a layer; none for `code` and `none`.
    pub fn level(&self, kind: Kind, layer: Layer) -> Option<Level> {
        let by_category = match kind.category() {
            Category::Transient | Category::Unknown => Level::Same,
            Category::Systematic => Level::Alternative,
            Category::Fatal => Level::Escalate,
            Category::Code | Category::None => return None,
        };
        Some(
            self.layer_defaults(layer)
                .level
                .or(self.level)
                .unwrap_or(by_category),
        )
    }

    /// What a person can do about it where it happened.
    pub fn hint_for_layer(&self, layer: Layer) -> &str {
        self.layer_defaults(layer)
            .hint
            .as_ref()
            .unwrap_or(&self.hint)
    }

    /// What a person can do about a failure; an agent's own command for signing in is named.
    pub(crate) fn hint_for(&self, failure: &Failure) -> String {
        let agent = (failure.tool.as_deref()).filter(|_| failure.layer == Layer::Agent);
        let login = self.login_hint.as_ref().zip(agent).and_then(|(hint, id)| {
            let agent = Agents::built_in().get(id)?;
            let login = Some(&agent.file().login).filter(|login| !login.is_empty())?;
            Some(hint.replace("{login}", login))
        });
        login.unwrap_or_else(|| self.hint_for_layer(failure.layer).to_owned())
    }

    /// What holds in a layer.
    pub fn layer_defaults(&self, layer: Layer) -> &LayerDefaults {
        match layer {
            Layer::Api => &self.api,
            Layer::Tool => &self.tool,
            Layer::Agent => &self.agent,
            Layer::Infra => &self.infra,
        }
    }
}

/// The kind that another becomes when it states a long wait.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongWaitKind {
    /// A longer wait than this many seconds is long.
    pub over_seconds: u64,
    /// What it becomes.
    pub becomes: Kind,
}

/// What a kind says about one layer; what it leaves out is the policy's to say.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerDefaults {
    /// What a person can do about it in this layer, where it differs.
    pub hint: Option<String>,
    /// The level at which recovery starts.
    pub level: Option<Level>,
    /// How many retries this kind gets.
    pub retries: Option<u32>,
    /// What the wait before the n-th retry is multiplied by.
    pub backoff_multiplier: Option<f64>,
    /// For how many seconds it is repeated unchanged without progress, where the policy goes by time: what a service takes to
    /// start.
    pub give_up_after_seconds: Option<u64>,
}

/// One way to recover in a kind's chain.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainEntry {
    /// The id of the strategy.
    pub strategy: String,
    /// The chance that it helps, from 0 to 1.
    pub confidence: f64,
    /// How many turns of the agent it takes.
    #[serde(default = "default_iterations")]
    pub iterations: u32,
    /// The layers it is for; empty means all.
    #[serde(default)]
    pub layers: Vec<Layer>,
}

fn default_iterations() -> u32 {
    1
}
