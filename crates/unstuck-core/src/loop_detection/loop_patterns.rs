//! What is known about being stuck, as data (`data/stuck.toml`).

use std::collections::{BTreeMap, HashSet};
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{RegexSet, RegexSetBuilder};
use serde::Deserialize;

use super::kind::LoopKind;
use crate::knowledge::{self, KnowledgeError};

/// The line that parts what is known from the samples, which only tests read.
const SAMPLES: &str = "\n# --- samples ---\n";
const FILE: &str = include_str!("../../data/stuck.toml");

/// The data file, the samples aside.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoopPatterns {
    /// How each way to be stuck is told.
    #[serde(rename = "what")]
    messages: BTreeMap<LoopKind, LoopMessage>,
    pub(super) lines: LinePatterns,
    pub(super) calls: CallPatterns,
    pub(super) questions: QuestionPatterns,
    pub(super) answers: AnswerPatterns,
}

/// How a way to be stuck is told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoopMessage {
    /// The sentence, with `{times}` and `{repeated}`.
    #[serde(rename = "says")]
    pub(super) sentence: String,
    /// What to do about it.
    pub(super) hint: String,
}

/// Lines that may be repeated.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinePatterns {
    /// Lines of work that goes on or waits: no block with one of them counts.
    pub(super) progress: PatternSet,
    /// Lines that say nothing of being stuck: the others of their block count.
    pub(super) harmless: PatternSet,
    /// Lines that tell what went wrong, where only one of many is shown.
    #[serde(rename = "telling")]
    pub(super) error_lines: PatternSet,
}

/// How calls are compared and shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallPatterns {
    /// Arguments that only tell why, or how long it may take.
    #[serde(rename = "aside")]
    pub(super) ignored_arguments: HashSet<String>,
    /// Arguments by which a call is shown, the first that there is.
    #[serde(rename = "shown")]
    pub(super) summary_arguments: Vec<String>,
    /// Calls that wait for something, by name and arguments.
    pub(super) waiting: PatternSet,
    /// Results that say that something is not yet over.
    pub(super) pending: PatternSet,
}

/// Questions on the screen that wait for a key or a line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuestionPatterns {
    /// At the end of the last line, whether or not it is ended.
    pub(super) any: PatternSet,
    /// Only where the last line is not ended.
    pub(super) unended: PatternSet,
    /// Lines that are no questions, although they look like some.
    pub(super) never: PatternSet,
}

/// Final answers that only ask.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerPatterns {
    /// Questions that hand the work back.
    pub(super) asking: PatternSet,
    /// Words of an answer that tells of work done.
    pub(super) done: PatternSet,
    /// A longer answer is one, whatever it asks in the end.
    pub(super) longest: usize,
}

impl LoopPatterns {
    pub(super) fn built_in() -> &'static Self {
        static READ: LazyLock<LoopPatterns> = LazyLock::new(|| match LoopPatterns::embedded() {
            Ok(data) => data,
            // The embedded file is tested; this can only be reached by a build that skipped its tests.
            Err(error) => unreachable!("embedded data: {error}"),
        });
        &READ
    }

    fn embedded() -> Result<Self, KnowledgeError> {
        let known = FILE.split_once(SAMPLES).map_or(FILE, |(known, _)| known);
        knowledge::parse_file("stuck.toml", known)
    }

    pub(super) fn message_for(&self, what: LoopKind) -> &LoopMessage {
        &self.messages[&what]
    }
}

/// Regular expressions in any letter case, compiled together when the first text comes.
#[derive(Debug, Deserialize)]
#[serde(from = "Vec<String>")]
pub(super) struct PatternSet {
    sources: Vec<String>,
    compiled: OnceLock<Option<RegexSet>>,
}

impl From<Vec<String>> for PatternSet {
    fn from(sources: Vec<String>) -> Self {
        Self {
            sources,
            compiled: OnceLock::new(),
        }
    }
}

impl PatternSet {
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
        let data = LoopPatterns::embedded().unwrap();
        for what in LoopKind::ALL {
            assert!(data.message_for(what).hint.ends_with('.'), "{what}");
        }
        let LoopPatterns {
            lines,
            calls,
            questions,
            answers,
            ..
        } = &data;
        for patterns in [
            &lines.progress,
            &lines.harmless,
            &lines.error_lines,
            &calls.waiting,
            &calls.pending,
            &questions.any,
            &questions.unended,
            &questions.never,
            &answers.asking,
            &answers.done,
        ] {
            for source in patterns.sources() {
                let alone = PatternSet::from(vec![source.clone()]);
                alone.match_any(b"");
                assert!(alone.compiled.get().unwrap().is_some(), "{source}");
            }
            assert!(!patterns.match_any(b""));
            assert!(patterns.compiled.get().unwrap().is_some());
        }
    }
}
