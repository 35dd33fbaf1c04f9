//! User configuration that extends or overrides the knowledge.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{
    DiagnosisKnowledge, DiagnosisRuleSpec, FailureLayerDefaults, Strategy, StrategyChainEntry,
};
use crate::failure::{FailureInputRecord, FailureKind, RecoveryLevel};

/// The `[kinds]` and `[strategies]` of a configuration.
///
/// ```
/// use unstuck_core::knowledge::{DiagnosisKnowledge, KnowledgeOverlay};
/// use unstuck_core::{Classifier, Failure, FailureKind, ClockReading, Timestamp};
///
/// let config = r#"
///     [[kinds.rate_limit.rule]]
///     id = "our_gateway"
///     any = ["the gateway is taking a breather"]
/// "#;
/// let overlay: KnowledgeOverlay = toml::from_str(config)?;
/// let classifier = Classifier::new(DiagnosisKnowledge::built_in().with_overlay(overlay))?;
/// let failure = Failure::tool("deploy").with_exit_code(1).with_stderr("The gateway is taking a breather.");
/// let now = ClockReading::utc(Timestamp::from_seconds(0));
/// assert_eq!(classifier.diagnose(&failure, &now).kind, FailureKind::RateLimit);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KnowledgeOverlay {
    /// Changes to kinds.
    pub kinds: BTreeMap<FailureKind, KindOverlay>,
    /// Added or replaced strategies.
    pub strategies: BTreeMap<String, Strategy>,
}

/// Returns the id of a built-in rule that had this id in an earlier version.
fn current_rule_id(id: &str) -> Option<&'static str> {
    match id {
        "words" => Some("text"),
        "time_up" => Some("time_limit"),
        _ => None,
    }
}

/// Changes to one kind; absent fields stay unchanged.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KindOverlay {
    /// The title.
    pub title: Option<String>,
    /// The recommended action.
    pub hint: Option<String>,
    /// The level at which recovery starts.
    pub level: Option<RecoveryLevel>,
    /// The defaults for failures of LLM API calls.
    pub api: Option<FailureLayerDefaults>,
    /// The defaults for failures of tool calls.
    pub tool: Option<FailureLayerDefaults>,
    /// The defaults for failures of agent processes.
    pub agent: Option<FailureLayerDefaults>,
    /// The defaults for failures of the environment.
    pub infra: Option<FailureLayerDefaults>,
    /// Strategies that replace the built-in ones.
    pub chain: Option<Vec<StrategyChainEntry>>,
    /// Additional rules; one with a known id replaces that one.
    pub rule: Vec<DiagnosisRuleSpec>,
    /// Additional failures that must be diagnosed as this kind.
    pub sample: Vec<FailureInputRecord>,
    /// Additional failures that must not be diagnosed as this kind.
    pub decoy: Vec<FailureInputRecord>,
}

impl DiagnosisKnowledge {
    /// Returns the knowledge with the user's changes.
    #[must_use]
    pub fn with_overlay(&self, overlay: KnowledgeOverlay) -> Self {
        let mut knowledge = self.clone();
        knowledge.strategies.extend(overlay.strategies);
        for (kind, change) in overlay.kinds {
            if let Some(file) = knowledge.kinds.get_mut(&kind) {
                change.apply(file);
            }
        }
        knowledge
    }
}

impl KindOverlay {
    pub(super) fn apply(self, file: &mut super::KindKnowledge) {
        file.title = self
            .title
            .unwrap_or_else(|| std::mem::take(&mut file.title));
        if let Some(hint) = self.hint {
            // A user's value applies to all layers.
            file.hint = hint;
            file.login_hint = None;
            for own in [
                &mut file.api,
                &mut file.tool,
                &mut file.agent,
                &mut file.infra,
            ] {
                own.hint = None;
            }
        }
        file.level = self.level.or(file.level);
        file.chain = self
            .chain
            .unwrap_or_else(|| std::mem::take(&mut file.chain));
        file.api = self.api.unwrap_or_else(|| std::mem::take(&mut file.api));
        file.tool = self.tool.unwrap_or_else(|| std::mem::take(&mut file.tool));
        file.agent = self
            .agent
            .unwrap_or_else(|| std::mem::take(&mut file.agent));
        file.infra = self
            .infra
            .unwrap_or_else(|| std::mem::take(&mut file.infra));
        for mut rule in self.rule {
            if let Some(id) = current_rule_id(&rule.id) {
                id.clone_into(&mut rule.id);
            }
            file.rule.retain(|known| known.id != rule.id);
            file.rule.push(Arc::new(rule));
        }
        file.sample.extend(self.sample);
        file.decoy.extend(self.decoy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaid(config: &str) -> DiagnosisKnowledge {
        DiagnosisKnowledge::built_in().with_overlay(toml::from_str(config).unwrap())
    }

    #[test]
    fn rule_with_a_known_id_is_replaced_and_another_is_added() {
        let rules = |config| overlaid(config).kind(FailureKind::DiskFull).rule.len();
        let known = DiagnosisKnowledge::built_in()
            .kind(FailureKind::DiskFull)
            .rule
            .len();
        assert_eq!(
            rules("[[kinds.disk_full.rule]]\nid = \"words\"\nany = [\"x y\"]"),
            known
        );
        assert_eq!(
            rules("[[kinds.disk_full.rule]]\nid = \"mine\"\nany = [\"x y\"]"),
            known + 1
        );
    }

    #[test]
    fn hints_levels_and_limits_of_a_layer_can_be_changed() {
        let config = "[kinds.timeout]\nhint = \"ask ops\"\n[kinds.timeout.agent]\nretries = 5";
        let knowledge = overlaid(config);
        let file = knowledge.kind(FailureKind::Timeout);
        assert_eq!(
            (file.hint.as_str(), file.agent.retries),
            ("ask ops", Some(5))
        );
        assert_eq!(
            file.title,
            DiagnosisKnowledge::built_in()
                .kind(FailureKind::Timeout)
                .title
        );
    }

    #[test]
    fn unknown_kinds_and_keys_are_rejected() {
        let error = |config: &str| {
            toml::from_str::<KnowledgeOverlay>(config)
                .unwrap_err()
                .to_string()
        };
        assert!(error("[kinds.rate_limt]\nhint = \"x\"").contains("did you mean `rate_limit`?"));
        assert!(error("[kinds.rate_limit]\nhnit = \"x\"").contains("hnit"));
    }

    #[test]
    fn rule_with_an_earlier_id_replaces_the_built_in_one() {
        let knowledge = overlaid("[[kinds.timeout.rule]]\nid = \"time_up\"\ndisabled = true\n");
        let rules = &knowledge.kinds[&FailureKind::Timeout].rule;
        let named = |id: &str| {
            rules
                .iter()
                .filter(|rule| rule.id == id)
                .collect::<Vec<_>>()
        };
        assert!(named("time_up").is_empty());
        assert!(named("time_limit").iter().all(|rule| rule.disabled));
    }
}
