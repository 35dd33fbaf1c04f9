//! What unstuck knows, as data: one file per kind, and one each for strategies and the like.
//!
//! The files are embedded; a user's configuration [adds to them or overrides them](NetworkKnowledge::overlaid).
//! This module only reads and checks the data. What it means is the business of the stages that use it.

mod hosts;
mod kind_file;
mod overlay;
mod playbook;
mod rule_spec;
mod step_templates;
mod strategy;
mod text_rules;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use hosts::{Forge, HostKnowledge, Mirror};
pub use kind_file::{ChainEntry, KindKnowledge, LayerDefaults, LongWaitKind};
pub use overlay::{KindOverlay, KnowledgeOverlay};
pub use playbook::Playbook;
pub use rule_spec::{Condition, FailureStream, RetryAfterSpec, RuleSpec, ValuePattern};
pub use step_templates::{KnownTool, StepTemplate, StrategyVariant, ToolRole};
pub use strategy::{AttemptChange, ConversationMode, ModelChoice, Strategy};
pub use text_rules::{FailureAdmission, IgnoredLines, TextRules};

use crate::failure::Kind;

/// Why knowledge could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {problem}")]
pub struct KnowledgeError {
    /// The file, and the part of it.
    pub location: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What is known about kinds and texts: enough to diagnose.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    /// What is known about each kind.
    pub kinds: BTreeMap<Kind, KindKnowledge>,
    /// How texts are read in general.
    pub text_rules: TextRules,
    /// The strategies that a user added or changed.
    pub strategies: BTreeMap<String, Strategy>,
}

impl Knowledge {
    /// What is embedded in the program, the samples aside.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Knowledge> = LazyLock::new(|| load_embedded(without_samples));
        &BUILT_IN
    }

    /// What is embedded in the program, with the samples by which the rules are tested.
    ///
    /// They are half of the text and nothing but tests and people need them, so a cold start leaves them out.
    pub fn with_samples() -> &'static Self {
        static WHOLE: LazyLock<Knowledge> = LazyLock::new(|| load_embedded(|text| text));
        &WHOLE
    }

    fn embedded(part: impl Fn(&str) -> &str) -> Result<Self, KnowledgeError> {
        let file = |kind: &Kind| {
            let read = parse_file(&format!("kinds/{kind}.toml"), part(kind.file()))?;
            Ok((*kind, read))
        };
        let mut reading: TextRules =
            parse_file("reading.toml", include_str!("../../data/reading.toml"))?;
        reading.expand_named_parts();
        Ok(Self {
            kinds: Kind::ALL.iter().map(file).collect::<Result<_, _>>()?,
            text_rules: reading,
            strategies: BTreeMap::new(),
        })
    }

    /// What is known about a kind.
    pub fn kind(&self, kind: Kind) -> &KindKnowledge {
        &self.kinds[&kind]
    }
}

/// The line that parts the rules of an embedded kind file from its samples.
const SAMPLES_SEPARATOR: &str = "\n# --- samples ---\n";

fn without_samples(text: &str) -> &str {
    text.split_once(SAMPLES_SEPARATOR)
        .map_or(text, |(rules, _)| rules)
}

fn load_embedded(part: impl Fn(&str) -> &str) -> Knowledge {
    match Knowledge::embedded(part) {
        Ok(knowledge) => knowledge,
        // The embedded files are tested; this can only be reached by a build that skipped its tests.
        Err(error) => unreachable!("embedded knowledge: {error}"),
    }
}

/// Reads one knowledge file.
pub(crate) fn parse_file<T: serde::de::DeserializeOwned>(
    place: &str,
    text: &str,
) -> Result<T, KnowledgeError> {
    toml::from_str(text).map_err(|error| KnowledgeError {
        location: place.to_owned(),
        problem: error.to_string().trim().to_owned(),
    })
}

impl From<Knowledge> for Cow<'static, Knowledge> {
    fn from(knowledge: Knowledge) -> Self {
        Self::Owned(knowledge)
    }
}

impl From<&'static Knowledge> for Cow<'static, Knowledge> {
    fn from(knowledge: &'static Knowledge) -> Self {
        Self::Borrowed(knowledge)
    }
}
