//! Tests of decisions in small worlds, each made for one question.

mod laws;
mod levels;
mod limits;
mod models;
mod patience;
mod waits;

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::decision::{
    BackoffCurve, EpisodeRecoveryHistory, Jitter, ModelCatalog, RetryPolicy, TokenUsage, template,
};
use crate::diagnosis::{Diagnosis, Evidence};
use crate::failure::FailureLayer;
use crate::knowledge::{
    AttemptChange, ConversationMode, FailureLayerDefaults, KindKnowledge, ReplacementModelChoice,
    Strategy, StrategyChainEntry,
};
use crate::time::Timestamp;

/// A failure that repeats until the test says otherwise, with its environment.
#[derive(Debug)]
pub(super) struct World {
    pub(super) policy: RetryPolicy,
    pub(super) history: EpisodeRecoveryHistory,
    pub(super) diagnosis: Diagnosis,
    pub(super) knowledge: KindKnowledge,
    pub(super) strategies: BTreeMap<String, Strategy>,
    pub(super) catalog: ModelCatalog,
    pub(super) model: Option<&'static str>,
    pub(super) expected: TokenUsage,
    pub(super) now: Timestamp,
    pub(super) draw: RandomDraw,
}

/// Returns a policy with predictable delays.
pub(super) fn exact(id: &str) -> RetryPolicy {
    RetryPolicy {
        jitter: Jitter::None,
        ..template(id).unwrap().clone()
    }
}

impl World {
    pub(super) fn new(kind: FailureKind, layer: FailureLayer) -> Self {
        let level = match kind.category() {
            Category::Transient | Category::Unknown => Some(RecoveryLevel::Same),
            Category::Systematic => Some(RecoveryLevel::Alternative),
            Category::Fatal => Some(RecoveryLevel::Escalate),
            Category::Code | Category::None => None,
        };
        let now = Timestamp::from_seconds(1_794_777_000);
        Self {
            policy: exact("standard"),
            history: EpisodeRecoveryHistory::new(now),
            diagnosis: diagnosis(kind, layer, level),
            knowledge: knowledge(),
            strategies: BTreeMap::new(),
            catalog: ModelCatalog::embedded(),
            model: Some("claude-sonnet-5-5"),
            expected: TokenUsage {
                input: 100_000,
                cached: 0,
                output: 10_000,
                requests: 1,
            },
            now,
            draw: RandomDraw(u64::MAX / 2),
        }
        .with_chain(&[
            (
                "simplify",
                0.8,
                Some(AttemptChange::Prompt("simplify".into())),
            ),
            (
                "fresh",
                0.7,
                Some(AttemptChange::Conversation(ConversationMode::Fresh)),
            ),
            (
                "next_model",
                0.6,
                Some(AttemptChange::Model(ReplacementModelChoice::Next)),
            ),
            ("ask_user", 0.9, None),
        ])
    }

    /// Sets the chain; strategies whose name begins with `escalation` escalate.
    pub(super) fn with_chain(mut self, chain: &[(&str, f64, Option<AttemptChange>)]) -> Self {
        self.strategies.clear();
        self.knowledge.chain.clear();
        for (id, confidence, change) in chain {
            self.knowledge.chain.push(StrategyChainEntry {
                strategy: (*id).into(),
                confidence: *confidence,
                iterations: 1,
                layers: Vec::new(),
            });
            let strategy = Strategy {
                title: format!("{id} it"),
                changes: change.iter().cloned().collect(),
                risks: Vec::new(),
                requires_human: id.starts_with("ask"),
            };
            self.strategies.insert((*id).into(), strategy);
        }
        self
    }

    pub(super) fn with_retries(mut self, retries: u32, multiplier: f64) -> Self {
        let own = FailureLayerDefaults {
            retries: Some(retries),
            backoff_multiplier: Some(multiplier),
            level: None,
            hint: None,
            give_up_after_seconds: None,
        };
        self.knowledge.agent = own;
        self
    }

    pub(super) fn situation(&self) -> DecisionInput<'_> {
        let model = self.model.map(|id| CurrentModel {
            id,
            catalog: &self.catalog,
            expected: self.expected,
        });
        DecisionInput {
            model,
            ..DecisionInput::new(
                &self.policy,
                &self.history,
                &self.diagnosis,
                &self.knowledge,
                &self.strategies,
                self.now,
            )
        }
    }

    pub(super) fn decide(&self) -> Decision {
        decide(&self.situation(), self.draw)
    }

    /// Applies the decision; the same failure occurs again.
    pub(super) fn fails_again_after(&mut self, decision: &Decision) -> bool {
        let Some(attempt) = decision.to_retry_record(0.0) else {
            return false;
        };
        self.now = self.now.after(attempt.delay);
        self.history.record(attempt);
        true
    }

    /// Returns all decisions until recovery ends.
    pub(super) fn run(&mut self) -> Vec<Decision> {
        let mut decisions = Vec::new();
        loop {
            let decision = self.decide();
            let goes_on = self.fails_again_after(&decision);
            decisions.push(decision);
            assert!(decisions.len() < 1100, "an endless loop");
            if !goes_on {
                return decisions;
            }
        }
    }
}

/// Returns a short form of the decisions: the level and the strategy of each.
pub(super) fn story(decisions: &[Decision]) -> Vec<String> {
    let one = |decision: &Decision| {
        let level = decision.level.map_or("stop", RecoveryLevel::name);
        match &decision.strategy {
            Some(strategy) => format!("{level} {strategy}"),
            None => level.to_owned(),
        }
    };
    decisions.iter().map(one).collect()
}

pub(super) fn delays(decisions: &[Decision]) -> Vec<f64> {
    let delays = decisions.iter().filter_map(Decision::delay);
    delays.map(|delay| delay.as_secs_f64()).collect()
}

fn diagnosis(kind: FailureKind, layer: FailureLayer, level: Option<RecoveryLevel>) -> Diagnosis {
    Diagnosis {
        kind,
        layer,
        level,
        confidence: 0.9,
        retry_after: None,
        retry_after_source: None,
        evidence: Evidence {
            rule: "test".into(),
            line: "it failed".into(),
        },
        fingerprint: "it failed".into(),
        message: "it failed".into(),
        hint: String::new(),
        truncated: false,
    }
}

/// Parsed from data, so that other fields of a kind file do not matter here.
fn knowledge() -> KindKnowledge {
    toml::from_str("title = 'It failed'").unwrap()
}
