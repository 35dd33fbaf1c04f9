//! Patterns of the repair knowledge: a literal, or a regular expression between slashes; case-insensitive.

use std::ops::Range;
use std::sync::OnceLock;

use regex::{Captures, Regex, RegexBuilder};
use serde::{Deserialize, Deserializer};

use crate::regex_literals;

/// A text pattern, compiled on first use.
#[derive(Debug, Clone)]
pub(super) struct FailurePattern {
    source: String,
    /// Lower-case literals of which a matching text contains at least one. None if there are no useful ones.
    literals: OnceLock<Option<Vec<String>>>,
    compiled: OnceLock<Option<Regex>>,
}

impl FailurePattern {
    fn new(source: String) -> Self {
        Self {
            source,
            literals: OnceLock::new(),
            compiled: OnceLock::new(),
        }
    }

    /// Returns every match.
    pub(super) fn all_captures<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        let regex = self.regex_for(text).into_iter();
        regex.flat_map(move |regex| regex.captures_iter(text))
    }

    /// Returns the first match.
    pub(super) fn find(&self, text: &str) -> Option<Range<usize>> {
        self.regex_for(text)?.find(text).map(|found| found.range())
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex_for(text)
            .is_some_and(|regex| regex.is_match(text))
    }

    /// Returns the error of an invalid pattern.
    pub(super) fn problem(&self) -> Option<String> {
        let wrong = |error: regex::Error| format!("`{}`: {error}", self.source);
        match self.source.trim() {
            "" | "//" => Some("an empty pattern matches everything".to_owned()),
            _ => self.build().err().map(wrong),
        }
    }

    /// Returns the regex if it can match the text. Most never do, and compiling is the expensive part.
    fn regex_for(&self, text: &str) -> Option<&Regex> {
        let literals = self.literals.get_or_init(|| match self.expression() {
            Some(regex) => regex_literals::required_literals(regex),
            None => Some(vec![self.source.to_ascii_lowercase()]),
        });
        let text = text.as_bytes();
        let has = |literal: &String| contains(text, literal.as_bytes());
        let may_match = literals.as_ref().is_none_or(|all| all.iter().any(has));
        let compiled = || self.compiled.get_or_init(|| self.build().ok()).as_ref();
        may_match.then(compiled).flatten()
    }

    /// Returns the expression between the slashes.
    fn expression(&self) -> Option<&str> {
        self.source.strip_prefix('/')?.strip_suffix('/')
    }

    fn build(&self) -> Result<Regex, regex::Error> {
        let source = match self.expression() {
            Some(regex) => regex.to_owned(),
            None => regex::escape(&self.source),
        };
        RegexBuilder::new(&source)
            .case_insensitive(true)
            .multi_line(true)
            .size_limit(4 << 20)
            .build()
    }
}

/// Returns true if a text contains a lower-case literal, in any letter case.
fn contains(text: &[u8], literal: &[u8]) -> bool {
    let Some((first, rest)) = literal.split_first() else {
        return true;
    };
    let upper = first.to_ascii_uppercase();
    memchr::memchr2_iter(*first, upper, text).any(|at| {
        let behind = text.get(at + 1..at + literal.len());
        behind.is_some_and(|behind| behind.eq_ignore_ascii_case(rest))
    })
}

impl PartialEq for FailurePattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl<'de> Deserialize<'de> for FailurePattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}
