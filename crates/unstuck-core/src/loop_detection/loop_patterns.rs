//! The patterns and messages of loop detection, as data (`data/loop_detection.toml`).

use std::collections::{BTreeMap, HashSet};
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{RegexSet, RegexSetBuilder};
use serde::Deserialize;

use super::kind::LoopKind;
use crate::knowledge::{self, KnowledgeError};

/// The line that separates the definitions from the samples, which only tests read.
const SAMPLES: &str = "\n# --- samples ---\n";
const FILE: &str = include_str!("../../data/loop_detection.toml");

/// The data file without its samples.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoopPatterns {
    /// The message for each kind of loop.
    messages: BTreeMap<LoopKind, LoopMessage>,
    pub(super) lines: LinePatterns,
    pub(super) calls: ToolCallComparison,
    pub(super) questions: QuestionPatterns,
    pub(super) answers: QuestionOnlyAnswerPatterns,
}

/// The message for a kind of loop.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoopMessage {
    /// The sentence, with `{times}` and `{repeated}`.
    pub(super) sentence: String,
    /// The recommended action.
    pub(super) hint: String,
}

/// Patterns of lines that may be repeated.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinePatterns {
    /// Lines of ongoing work or waiting: a block with one of them is not a loop.
    pub(super) progress: PatternSet,
    /// Lines that say nothing about loops: only the other lines of their block are evaluated.
    pub(super) harmless: PatternSet,
    /// Lines that describe an error, for selecting one line to show.
    pub(super) error_lines: PatternSet,
}

/// How tool calls are compared and shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCallComparison {
    /// Arguments that only explain a call or set its timeout.
    pub(super) ignored_arguments: HashSet<String>,
    /// Arguments shown in the summary of a call; the first present one is used.
    pub(super) summary_arguments: Vec<String>,
    /// Calls that wait for something, by name and arguments.
    pub(super) waiting: PatternSet,
    /// Results that report that something is still in progress.
    pub(super) pending: PatternSet,
}

/// Prompts on the screen that wait for a key or a line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuestionPatterns {
    /// At the end of the last line, terminated or not.
    pub(super) any: PatternSet,
    /// Only at the end of an unterminated last line.
    pub(super) unterminated: PatternSet,
    /// Lines that look like prompts but are not.
    pub(super) never: PatternSet,
}

/// Final answers that only ask a question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuestionOnlyAnswerPatterns {
    /// Questions that hand the work back.
    pub(super) asking: PatternSet,
    /// Words of an answer that reports finished work.
    pub(super) done: PatternSet,
    /// Maximum length; a longer answer is an answer, whatever it asks at the end.
    pub(super) max_length: usize,
}

impl LoopPatterns {
    pub(super) fn built_in() -> &'static Self {
        static READ: LazyLock<LoopPatterns> = LazyLock::new(|| match LoopPatterns::embedded() {
            Ok(data) => data,
            // The embedded file is tested; only a build that skipped its tests can get here.
            Err(error) => unreachable!("embedded data: {error}"),
        });
        &READ
    }

    fn embedded() -> Result<Self, KnowledgeError> {
        let known = FILE.split_once(SAMPLES).map_or(FILE, |(known, _)| known);
        knowledge::parse_file("loop_detection.toml", known)
    }

    pub(super) fn message_for(&self, what: LoopKind) -> &LoopMessage {
        &self.messages[&what]
    }
}

/// Case-insensitive regular expressions, compiled together on first use.
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
    fn every_loop_kind_has_a_message_and_every_pattern_compiles() {
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
            &questions.unterminated,
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
