//! The knowledge base, as data: one file per failure kind, and one each for strategies and the like.
//!
//! The files are embedded; a user's configuration [extends or overrides them](DiagnosisKnowledge::with_overlay). This module
//! only parses and validates the data; other modules interpret it.

mod alternative_urls;
mod general_text_rules;
mod kind_file;
mod overlay;
mod recovery_knowledge;
mod rule_spec;
mod step_templates;
mod strategy;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use alternative_urls::{Forge, ForgesAndMirrors, MirrorUrlRule};
pub use general_text_rules::{HiddenFailureLineRule, IgnoredLineRule, SharedTextRules};
pub use kind_file::{
    FailureLayerDefaults, KindKnowledge, LongWaitReclassification, StrategyChainEntry,
};
pub use overlay::{KindOverlay, KnowledgeOverlay};
pub use recovery_knowledge::RecoveryKnowledge;
pub use rule_spec::{
    DiagnosisRetryAfterSpec, DiagnosisRuleSpec, DiagnosisRunCondition, DiagnosisValuePattern,
    FailureTextSource,
};
pub use step_templates::{KnownAgentTool, ToolCallStrategyVariant, ToolCallTemplate, ToolRole};
pub use strategy::{AttemptChange, ConversationMode, ReplacementModelChoice, Strategy};

use crate::failure::FailureKind;

/// An error in a knowledge file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {problem}")]
pub struct KnowledgeError {
    /// The file, and the part of it.
    pub location: String,
    /// The problem.
    pub problem: String,
}

/// The knowledge about kinds and texts that diagnosis needs.
#[derive(Debug, Clone, PartialEq)]
pub struct DiagnosisKnowledge {
    /// The knowledge about each kind.
    pub kinds: BTreeMap<FailureKind, KindKnowledge>,
    /// The general rules for reading texts.
    pub text_rules: SharedTextRules,
    /// The strategies added or changed by the user.
    pub strategies: BTreeMap<String, Strategy>,
}

impl DiagnosisKnowledge {
    /// Returns the embedded knowledge without samples.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<DiagnosisKnowledge> =
            LazyLock::new(|| load_embedded(without_samples));
        &BUILT_IN
    }

    /// Returns the embedded knowledge with the samples that test the rules.
    ///
    /// They are half of the text and only needed by tests and humans, so a cold start skips them.
    pub fn with_samples() -> &'static Self {
        static WHOLE: LazyLock<DiagnosisKnowledge> = LazyLock::new(|| load_embedded(|text| text));
        &WHOLE
    }

    fn embedded(part: impl Fn(&str) -> &str) -> Result<Self, KnowledgeError> {
        let file = |kind: &FailureKind| {
            let read = parse_file(&format!("kinds/{kind}.toml"), part(kind.file()))?;
            Ok((*kind, read))
        };
        let mut reading: SharedTextRules = parse_file(
            "text_rules.toml",
            include_str!("../../data/text_rules.toml"),
        )?;
        reading.expand_named_parts();
        Ok(Self {
            kinds: FailureKind::ALL
                .iter()
                .map(file)
                .collect::<Result<_, _>>()?,
            text_rules: reading,
            strategies: BTreeMap::new(),
        })
    }

    /// Returns the knowledge about a kind.
    pub fn kind(&self, kind: FailureKind) -> &KindKnowledge {
        &self.kinds[&kind]
    }
}

/// The line that separates the rules of an embedded kind file from its samples.
const SAMPLES_SEPARATOR: &str = "\n# --- samples ---\n";

fn without_samples(text: &str) -> &str {
    text.split_once(SAMPLES_SEPARATOR)
        .map_or(text, |(rules, _)| rules)
}

fn load_embedded(part: impl Fn(&str) -> &str) -> DiagnosisKnowledge {
    match DiagnosisKnowledge::embedded(part) {
        Ok(knowledge) => knowledge,
        // The embedded files are tested; only a build that skipped its tests can get here.
        Err(error) => unreachable!("embedded knowledge: {error}"),
    }
}

/// Parses a knowledge file.
pub(crate) fn parse_file<T: serde::de::DeserializeOwned>(
    place: &str,
    text: &str,
) -> Result<T, KnowledgeError> {
    toml::from_str(text).map_err(|error| KnowledgeError {
        location: place.to_owned(),
        problem: error.to_string().trim().to_owned(),
    })
}

impl From<DiagnosisKnowledge> for Cow<'static, DiagnosisKnowledge> {
    fn from(knowledge: DiagnosisKnowledge) -> Self {
        Self::Owned(knowledge)
    }
}

impl From<&'static DiagnosisKnowledge> for Cow<'static, DiagnosisKnowledge> {
    fn from(knowledge: &'static DiagnosisKnowledge) -> Self {
        Self::Borrowed(knowledge)
    }
}
