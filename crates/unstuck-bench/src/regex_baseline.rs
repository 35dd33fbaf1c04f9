//! The baseline classifier: one regular expression after the other, over the whole text.

use std::collections::BTreeSet;

use regex::bytes::{Regex, RegexBuilder};
use unstuck_core::knowledge::DiagnosisKnowledge;

/// The patterns of the built-in rules, each compiled once.
pub(crate) struct RegexLoop {
    regexes: Vec<Regex>,
    /// Number of patterns skipped because they need Unicode.
    pub(crate) skipped: usize,
}

impl RegexLoop {
    /// Compiles the text patterns of all rules; the classifier's other matchers (fields, stated statuses and waits,
    /// warnings) are left out, in the baseline's favor.
    pub(crate) fn from_knowledge(knowledge: &DiagnosisKnowledge) -> Self {
        let rules = knowledge.kinds.values().flat_map(|file| &file.rule);
        let sources: BTreeSet<&String> = rules
            .filter(|rule| !rule.disabled)
            .flat_map(|rule| rule.any.iter().chain(&rule.all).chain(&rule.none))
            .collect();
        let regexes: Vec<Regex> = sources
            .iter()
            .filter_map(|source| compile(source))
            .collect();
        Self {
            skipped: sources.len() - regexes.len(),
            regexes,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.regexes.len()
    }

    /// Returns the number of matching patterns.
    pub(crate) fn count_matches(&self, text: &[u8]) -> usize {
        self.regexes
            .iter()
            .filter(|regex| regex.is_match(text))
            .count()
    }
}

fn compile(source: &str) -> Option<Regex> {
    let inner = source
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix('/'));
    let regex = inner.map_or_else(|| regex::escape(source), str::to_owned);
    RegexBuilder::new(&regex)
        .case_insensitive(true)
        .multi_line(true)
        .unicode(false)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_expressions_match_case_insensitively() {
        assert!(
            compile("a.b").is_some_and(|regex| regex.is_match(b"xA.By") && !regex.is_match(b"axb"))
        );
        assert!(compile("/^a.b$/").is_some_and(|regex| regex.is_match(b"x\nAxB\ny")));
    }
}
