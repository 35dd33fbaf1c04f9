//! The knowledge file of a failure kind (`data/kinds/<kind>.toml`).

use std::sync::Arc;

use serde::Deserialize;

use crate::agent::Agents;
use crate::failure::{
    Category, Failure, FailureInputRecord, FailureKind, FailureLayer, RecoveryLevel,
};

use super::DiagnosisRuleSpec;

/// The knowledge about one failure kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindKnowledge {
    /// The title.
    pub title: String,
    /// The recommended action.
    #[serde(default)]
    pub hint: String,
    /// The recommended action for agents with a login command, inserted as `{login}`.
    pub login_hint: Option<String>,
    /// The level at which recovery starts; by default that of the category.
    pub level: Option<RecoveryLevel>,
    /// The defaults for failures of LLM API calls.
    #[serde(default)]
    pub api: FailureLayerDefaults,
    /// The defaults for failures of tool calls.
    #[serde(default)]
    pub tool: FailureLayerDefaults,
    /// The defaults for failures of agent processes.
    #[serde(default)]
    pub agent: FailureLayerDefaults,
    /// The defaults for failures of the environment.
    #[serde(default)]
    pub infra: FailureLayerDefaults,
    /// The strategies, by priority.
    #[serde(default)]
    pub chain: Vec<StrategyChainEntry>,
    /// If set, a matching and permitted repair comes before the first plain retry, even if the kind is transient.
    #[serde(default)]
    pub repair_first: bool,
    /// The kind it becomes if it states a long wait.
    pub long_wait: Option<LongWaitReclassification>,
    /// The rules that recognize it.
    #[serde(default)]
    pub rule: Vec<Arc<DiagnosisRuleSpec>>,
    /// Failures that must be diagnosed as this kind.
    #[serde(default)]
    pub sample: Vec<FailureInputRecord>,
    /// Failures that resemble this kind and must not be diagnosed as it.
    #[serde(default)]
    pub decoy: Vec<FailureInputRecord>,
}

impl KindKnowledge {
    /// Returns the level at which recovery of this kind starts in a layer; none for `code` and `none`.
    pub fn level(&self, kind: FailureKind, layer: FailureLayer) -> Option<RecoveryLevel> {
        let by_category = match kind.category() {
            Category::Transient | Category::Unknown => RecoveryLevel::Same,
            Category::Systematic => RecoveryLevel::Alternative,
            Category::Fatal => RecoveryLevel::Escalate,
            Category::Code | Category::None => return None,
        };
        Some(
            self.layer_defaults(layer)
                .level
                .or(self.level)
                .unwrap_or(by_category),
        )
    }

    /// Returns the recommended action in a layer.
    pub fn hint_for_layer(&self, layer: FailureLayer) -> &str {
        self.layer_defaults(layer)
            .hint
            .as_ref()
            .unwrap_or(&self.hint)
    }

    /// Returns the recommended action for a failure, including the agent's own login command.
    pub(crate) fn hint_for(&self, failure: &Failure) -> String {
        let agent = (failure.tool.as_deref()).filter(|_| failure.layer == FailureLayer::Agent);
        let login = self.login_hint.as_ref().zip(agent).and_then(|(hint, id)| {
            let agent = Agents::built_in().get(id)?;
            let login = Some(&agent.file().login).filter(|login| !login.is_empty())?;
            Some(hint.replace("{login}", login))
        });
        login.unwrap_or_else(|| self.hint_for_layer(failure.layer).to_owned())
    }

    /// Returns the defaults for a layer.
    pub fn layer_defaults(&self, layer: FailureLayer) -> &FailureLayerDefaults {
        match layer {
            FailureLayer::Api => &self.api,
            FailureLayer::Tool => &self.tool,
            FailureLayer::Agent => &self.agent,
            FailureLayer::Infra => &self.infra,
        }
    }
}

/// The kind that another becomes if it states a long wait.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongWaitReclassification {
    /// The wait in seconds above which it is long.
    pub over_seconds: u64,
    /// The resulting kind.
    pub becomes: FailureKind,
}

/// The defaults of a kind in one layer; omitted ones are left to the policy.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureLayerDefaults {
    /// The recommended action in this layer, if it differs.
    pub hint: Option<String>,
    /// The level at which recovery starts.
    pub level: Option<RecoveryLevel>,
    /// The number of retries.
    pub retries: Option<u32>,
    /// The multiplier of the n-th retry's delay.
    pub backoff_multiplier: Option<f64>,
    /// The time limit in seconds of unchanged retries without progress, for policies limited by time: the start-up time
    /// of a service.
    pub give_up_after_seconds: Option<u64>,
}

/// A strategy in a kind's chain.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategyChainEntry {
    /// The id of the strategy.
    pub strategy: String,
    /// The probability of success, from 0 to 1.
    pub confidence: f64,
    /// The number of agent turns it takes.
    #[serde(default = "default_iterations")]
    pub iterations: u32,
    /// The applicable layers; empty means all.
    #[serde(default)]
    pub layers: Vec<FailureLayer>,
}

fn default_iterations() -> u32 {
    1
}
