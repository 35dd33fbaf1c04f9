//! The recovery chains of a role: those of the playbook, modified by `[error_recovery]` and the role itself.

use std::borrow::Cow;
use std::collections::BTreeMap;

use unstuck_core::knowledge::{
    AttemptChange, KindOverlay, KnowledgeError, KnowledgeOverlay, RecoveryKnowledge, Strategy,
    StrategyChainEntry,
};
use unstuck_core::{FailureKind, FailureLayer};

use crate::config::Config;
use crate::section::{FailureKindRecoverySection, RoleSection};

/// The confidence of the first strategy a user lists; it decreases along the list to keep the order.
const FIRST_CONFIDENCE: f64 = 0.99;
const CONFIDENCE_STEP: f64 = 0.02;

/// A switch of [`FailureKindRecoverySection`] and the changes it controls.
struct Switch {
    setting: fn(&FailureKindRecoverySection) -> Option<bool>,
    matches: fn(&AttemptChange) -> bool,
    /// The name suffix of a strategy without the change.
    suffix_without: &'static str,
    /// The strategy that adds the change to a chain.
    strategy: &'static str,
}

const SWITCHES: [Switch; 3] = [
    Switch {
        setting: |recovery| recovery.simplify_prompt,
        matches: |change| matches!(change, AttemptChange::Prompt(name) if name == "focus"),
        suffix_without: "without a simpler prompt",
        strategy: "focus_on_core",
    },
    Switch {
        setting: |recovery| recovery.emphasize_format,
        matches: |change| matches!(change, AttemptChange::Prompt(name) if ["sections", "format", "diff"].contains(&name.as_str())),
        suffix_without: "without stressing the format",
        strategy: "strict_format",
    },
    Switch {
        setting: |recovery| recovery.reduce_max_chars,
        matches: |change| matches!(change, AttemptChange::OutputLimit(_)),
        suffix_without: "at the same length",
        strategy: "smaller_output",
    },
];

impl Config {
    /// Returns the playbook of a role.
    ///
    /// The user's chains must have passed [`prepare`](Config::prepare).
    pub fn role_recovery_knowledge(
        &self,
        role: &RoleSection,
    ) -> Result<Cow<'_, RecoveryKnowledge>, KnowledgeError> {
        let playbook = self.playbook();
        let overlay = chains(playbook, &self.role_recovery(role));
        if overlay == KnowledgeOverlay::default() {
            return Ok(Cow::Borrowed(playbook));
        }
        playbook.with_overlay(overlay).map(Cow::Owned)
    }

    /// Returns the recovery settings of a role by kind; its own settings take precedence.
    pub fn role_recovery(
        &self,
        role: &RoleSection,
    ) -> BTreeMap<FailureKind, FailureKindRecoverySection> {
        let mut all = self.root.error_recovery.strategies.clone();
        for (kind, own) in &role.error_recovery {
            let general = all.get(kind).cloned().unwrap_or_default();
            all.insert(*kind, own.or(&general));
        }
        all
    }
}

/// Returns the chains that differ from the playbook.
fn chains(
    playbook: &RecoveryKnowledge,
    recoveries: &BTreeMap<FailureKind, FailureKindRecoverySection>,
) -> KnowledgeOverlay {
    let mut overlay = KnowledgeOverlay::default();
    for (kind, recovery) in recoveries {
        let Some(known) = playbook.kind(*kind) else {
            continue;
        };
        let mut chain = ChainBuilder {
            playbook,
            entries: known.chain.clone(),
            strategies: BTreeMap::new(),
        };
        chain.apply(recovery);
        if chain.entries != known.chain {
            let change = KindOverlay {
                chain: Some(chain.entries),
                ..KindOverlay::default()
            };
            overlay.kinds.insert(*kind, change);
            overlay.strategies.extend(chain.strategies);
        }
    }
    overlay
}

/// A chain under construction, with the strategies it adds to the known ones.
struct ChainBuilder<'a> {
    playbook: &'a RecoveryKnowledge,
    entries: Vec<StrategyChainEntry>,
    strategies: BTreeMap<String, Strategy>,
}

impl ChainBuilder<'_> {
    fn apply(&mut self, recovery: &FailureKindRecoverySection) {
        if let Some(named) = &recovery.strategies {
            let mut sure = FIRST_CONFIDENCE;
            self.entries = named.iter().map(|id| chain_entry(id, &mut sure)).collect();
        }
        for switch in &SWITCHES {
            match (switch.setting)(recovery) {
                Some(true) => self.add_change(switch),
                Some(false) => self.remove_change(switch),
                None => {}
            }
        }
        if let Some(template) = &recovery.custom_prompt_modifier {
            self.add_prompt(template);
        }
    }

    fn strategy(&self, id: &str) -> Option<&Strategy> {
        let own = self.strategies.get(id);
        own.or_else(|| self.playbook.strategy(id))
    }

    /// Adds an entry unless the chain already has it.
    fn push(&mut self, link: StrategyChainEntry) {
        let known = |known: &StrategyChainEntry| {
            known.strategy == link.strategy && known.layers == link.layers
        };
        if !self.entries.iter().any(known) {
            self.entries.push(link);
        }
    }

    /// Removes a change from every strategy; a strategy without other changes is dropped.
    fn remove_change(&mut self, switch: &Switch) {
        for mut link in std::mem::take(&mut self.entries) {
            let Some(strategy) = self.strategy(&link.strategy).cloned() else {
                continue;
            };
            let kept = strategy.changes.iter().filter(|one| !(switch.matches)(one));
            let changes: Vec<_> = kept.cloned().collect();
            if changes.len() == strategy.changes.len() {
                self.push(link);
                continue;
            }
            if is_ineffective(&changes) {
                continue;
            }
            link.strategy = self.strategy_with(&link.strategy, strategy, changes, switch);
            self.push(link);
        }
    }

    /// Returns the strategy with exactly these changes, a known or a derived one.
    fn strategy_with(
        &mut self,
        id: &str,
        mut strategy: Strategy,
        changes: Vec<AttemptChange>,
        switch: &Switch,
    ) -> String {
        let mut known = self.playbook.strategies();
        if let Some((known, _)) = known.find(|(_, known)| known.changes == changes) {
            return known.to_owned();
        }
        let id = format!("{id}_{}", switch.suffix_without.replace(' ', "_"));
        strategy.title = format!("{}, {}", strategy.title, switch.suffix_without);
        strategy.changes = changes;
        self.strategies.insert(id.clone(), strategy);
        id
    }

    /// Ensures that a strategy makes the change.
    fn add_change(&mut self, switch: &Switch) {
        let makes = |link: &StrategyChainEntry| {
            let strategy = self.strategy(&link.strategy);
            strategy.is_some_and(|strategy| strategy.changes.iter().any(switch.matches))
        };
        if !self.entries.iter().any(makes) {
            self.entries.insert(
                0,
                chain_entry(switch.strategy, &mut FIRST_CONFIDENCE.clone()),
            );
        }
    }

    /// Puts a prompt template first, with the non-prompt changes of the first strategy.
    fn add_prompt(&mut self, template: &str) {
        let id = format!("prompt_{template}");
        let first = self
            .entries
            .iter()
            .filter(|link| link.layers.is_empty() || link.layers.contains(&FailureLayer::Agent))
            .filter_map(|link| self.strategy(&link.strategy))
            .find(|strategy| !strategy.requires_human && !strategy.changes.is_empty());
        let others = first.into_iter().flat_map(|first| &first.changes);
        let others = others.filter(|change| {
            matches!(
                change,
                AttemptChange::Timeout(_) | AttemptChange::OutputLimit(_)
            )
        });
        let mut changes = vec![AttemptChange::Prompt(template.to_owned())];
        changes.extend(others.cloned());
        let mut title = format!("Add the prompt `{template}`");
        if changes
            .iter()
            .any(|change| matches!(change, AttemptChange::Timeout(_)))
        {
            title.push_str(", with more time");
        }
        let strategy = Strategy {
            title,
            changes,
            risks: Vec::new(),
            requires_human: false,
        };
        self.strategies.insert(id.clone(), strategy);
        self.entries.insert(
            0,
            chain_entry(&id, &mut (FIRST_CONFIDENCE + CONFIDENCE_STEP / 4.0)),
        );
    }
}

/// Returns whether no useful change is left: a new conversation alone does not recover from a failure.
fn is_ineffective(changes: &[AttemptChange]) -> bool {
    changes
        .iter()
        .all(|change| matches!(change, AttemptChange::Conversation(_)))
}

fn chain_entry(strategy: &str, sure: &mut f64) -> StrategyChainEntry {
    let link = StrategyChainEntry {
        strategy: strategy.to_owned(),
        confidence: *sure,
        iterations: 1,
        layers: Vec::new(),
    };
    *sure = (*sure - CONFIDENCE_STEP).max(0.5);
    link
}
