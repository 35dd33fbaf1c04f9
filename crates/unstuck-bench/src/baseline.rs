//! What ours is compared with: one regular expression after the other, over the whole text.

use std::collections::BTreeSet;

use regex::bytes::{Regex, RegexBuilder};
use unstuck_core::knowledge::Knowledge;

/// The patterns of the built-in rules, each compiled once.
pub(crate) struct RegexLoop {
    regexes: Vec<Regex>,
    /// How many patterns were left out because they cannot be written without Unicode.
    pub(crate) skipped: usize,
}

impl RegexLoop {
    /// Compiles all that rules look for in texts; what ours looks for besides (fields, stated statuses and waits,
    /// warnings) is left out, in the baseline's favour.
    pub(crate) fn from_knowledge(knowledge: &Knowledge) -> Self {
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

    /// How many of the patterns match.
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
    fn a_literal_and_an_expression_both_match_in_any_case() {
        assert!(
            compile("a.b").is_some_and(|regex| regex.is_match(b"xA.By") && !regex.is_match(b"axb"))
        );
        assert!(compile("/^a.b$/").is_some_and(|regex| regex.is_match(b"x\nAxB\ny")));
    }
}
