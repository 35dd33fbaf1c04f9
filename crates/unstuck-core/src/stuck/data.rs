//! What is known about being stuck, as data (`data/stuck.toml`).

use std::collections::{BTreeMap, HashSet};
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{RegexSet, RegexSetBuilder};
use serde::Deserialize;

use super::what::StuckWhat;
use crate::knowledge::{self, KnowledgeError};

/// The line that parts what is known from the samples, which only tests read.
const SAMPLES: &str = "\n# --- samples ---\n";
const FILE: &str = include_str!("../../data/stuck.toml");

/// The data file, the samples aside.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Data {
    /// How each way to be stuck is told.
    #[serde(rename = "what")]
    what: BTreeMap<StuckWhat, Words>,
    pub(super) lines: Lines,
    pub(super) calls: Calls,
    pub(super) questions: Questions,
    pub(super) answers: Answers,
}

/// How a way to be stuck is told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    /// The sentence, with `{times}` and `{repeated}`.
    #[serde(rename = "says")]
    pub(super) says: String,
    /// What to do about it.
    pub(super) hint: String,
}

/// Lines that may be repeated.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lines {
    /// Lines of work that goes on or waits: no block with one of them counts.
    pub(super) progress: Patterns,
    /// Lines that say nothing of being stuck: the others of their block count.
    pub(super) harmless: Patterns,
    /// Lines that tell what went wrong, where only one of many is shown.
    #[serde(rename = "telling")]
    pub(super) telling: Patterns,
}

/// How calls are compared and shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calls {
    /// Arguments that only tell why, or how long it may take.
    #[serde(rename = "aside")]
    pub(super) aside: HashSet<String>,
    /// Arguments by which a call is shown, the first that there is.
    #[serde(rename = "shown")]
    pub(super) shown: Vec<String>,
    /// Calls that wait for something, by name and arguments.
    pub(super) waiting: Patterns,
    /// Results that say that something is not yet over.
    pub(super) pending: Patterns,
}

/// Questions on the screen that wait for a key or a line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Questions {
    /// At the end of the last line, whether or not it is ended.
    pub(super) any: Patterns,
    /// Only where the last line is not ended.
    pub(super) unended: Patterns,
    /// Lines that are no questions, although they look like some.
    pub(super) never: Patterns,
}

/// Final answers that only ask.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answers {
    /// Questions that hand the work back.
    pub(super) asking: Patterns,
    /// Words of an answer that tells of work done.
    pub(super) done: Patterns,
    /// A longer answer is one, whatever it asks in the end.
    pub(super) longest: usize,
}

impl Data {
    pub(super) fn built_in() -> &'static Self {
        static READ: LazyLock<Data> = LazyLock::new(|| match Data::embedded() {
            Ok(data) => data,
            // The embedded file is tested; this can only be reached by a build that skipped its tests.
            Err(error) => unreachable!("embedded data: {error}"),
        });
        &READ
    }

    fn embedded() -> Result<Self, KnowledgeError> {
        let known = FILE.split_once(SAMPLES).map_or(FILE, |(known, _)| known);
        knowledge::read("stuck.toml", known)
    }

    pub(super) fn words(&self, what: StuckWhat) -> &Words {
        &self.what[&what]
    }
}

/// Regular expressions in any letter case, compiled together when the first text comes.
#[derive(Debug, Deserialize)]
#[serde(from = "Vec<String>")]
pub(super) struct Patterns {
    sources: Vec<String>,
    compiled: OnceLock<Option<RegexSet>>,
}

impl From<Vec<String>> for Patterns {
    fn from(sources: Vec<String>) -> Self {
        Self {
            sources,
            compiled: OnceLock::new(),
        }
    }
}

impl Patterns {
    pub(super) fn match_any(&self, text: &[u8]) -> bool {
        let compile = || {
            RegexSetBuilder::new(&self.sources)
                .case_insensitive(true)
                .multi_line(true)
                .unicode(false)
                .build()
                .ok()
        };
        let compiled = self.compiled.get_or_init(compile).as_ref();
        compiled.is_some_and(|set| set.is_match(text))
    }

    #[cfg(test)]
    pub(super) fn sources(&self) -> &[String] {
        &self.sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_be_stuck_has_words_and_every_pattern_compiles() {
        let data = Data::embedded().unwrap();
        for what in StuckWhat::ALL {
            assert!(data.words(what).hint.ends_with('.'), "{what}");
        }
        let Data {
            lines,
            calls,
            questions,
            answers,
            ..
        } = &data;
        for patterns in [
            &lines.progress,
            &lines.harmless,
            &lines.telling,
            &calls.waiting,
            &calls.pending,
            &questions.any,
            &questions.unended,
            &questions.never,
            &answers.asking,
            &answers.done,
        ] {
            for source in patterns.sources() {
                let alone = Patterns::from(vec![source.clone()]);
                alone.match_any(b"");
                assert!(alone.compiled.get().unwrap().is_some(), "{source}");
            }
            assert!(!patterns.match_any(b""));
            assert!(patterns.compiled.get().unwrap().is_some());
        }
    }
}
