//! What unstuck knows, as data: one file per kind, and one each for strategies and the like.
//!
//! The files are embedded; a user's configuration [adds to them or overrides them](Knowledge::overlaid).
//! This module only reads and checks the data. What it means is the business of the stages that use it.

mod hosts;
mod kind_file;
mod overlay;
mod playbook;
mod reading;
mod rule;
mod steps;
mod strategy;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use hosts::{Forge, Hosts, Mirror};
pub use kind_file::{KindFile, LayerDefaults, Link, LongWait};
pub use overlay::{KindOverlay, Overlay};
pub use playbook::Playbook;
pub use reading::{Admission, Aside, Reading};
pub use rule::{Circumstance, RuleSpec, Stream, WaitSpec, Wanted};
pub use steps::{KnownTool, Role, StepTemplate, Variant};
pub use strategy::{Change, ModelChoice, SessionChoice, Strategy};

use crate::failure::Kind;

/// Why knowledge could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct KnowledgeError {
    /// The file, and the part of it.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What is known about kinds and texts: enough to diagnose.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    /// What is known about each kind.
    pub kinds: BTreeMap<Kind, KindFile>,
    /// How texts are read in general.
    pub reading: Reading,
    /// The strategies that a user added or changed.
    pub strategies: BTreeMap<String, Strategy>,
}

impl Knowledge {
    /// What is embedded in the program, the samples aside.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Knowledge> = LazyLock::new(|| expected(without_samples));
        &BUILT_IN
    }

    /// What is embedded in the program, with the samples by which the rules are tested.
    ///
    /// They are half of the text and nothing but tests and people need them, so a cold start leaves them out.
    pub fn with_samples() -> &'static Self {
        static WHOLE: LazyLock<Knowledge> = LazyLock::new(|| expected(|text| text));
        &WHOLE
    }

    fn embedded(part: impl Fn(&str) -> &str) -> Result<Self, KnowledgeError> {
        let file = |kind: &Kind| {
            let read = read(&format!("kinds/{kind}.toml"), part(kind.file()))?;
            Ok((*kind, read))
        };
        let mut reading: Reading = read("reading.toml", include_str!("../../data/reading.toml"))?;
        reading.expand();
        Ok(Self {
            kinds: Kind::ALL.iter().map(file).collect::<Result<_, _>>()?,
            reading,
            strategies: BTreeMap::new(),
        })
    }

    /// What is known about a kind.
    pub fn kind(&self, kind: Kind) -> &KindFile {
        &self.kinds[&kind]
    }
}

/// The line that parts the rules of an embedded kind file from its samples.
const SAMPLES: &str = "\n# --- samples ---\n";

fn without_samples(text: &str) -> &str {
    text.split_once(SAMPLES).map_or(text, |(rules, _)| rules)
}

fn expected(part: impl Fn(&str) -> &str) -> Knowledge {
    match Knowledge::embedded(part) {
        Ok(knowledge) => knowledge,
        // The embedded files are tested; this can only be reached by a build that skipped its tests.
        Err(error) => unreachable!("embedded knowledge: {error}"),
    }
}

/// Reads one knowledge file.
pub(crate) fn read<T: serde::de::DeserializeOwned>(
    place: &str,
    text: &str,
) -> Result<T, KnowledgeError> {
    toml::from_str(text).map_err(|error| KnowledgeError {
        place: place.to_owned(),
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
