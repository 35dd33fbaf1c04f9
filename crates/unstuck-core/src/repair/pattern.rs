//! Patterns of the repair knowledge: a literal, or a regular expression between slashes; letter case aside.

use std::ops::Range;
use std::sync::OnceLock;

use regex::{Captures, Regex, RegexBuilder};
use serde::{Deserialize, Deserializer};

/// What to look for in a text; compiled when it is first needed.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    source: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    fn new(source: String) -> Self {
        Self {
            source,
            compiled: OnceLock::new(),
        }
    }

    /// Every place where it matches.
    pub(super) fn all_captures<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        let regex = self.regex().into_iter();
        regex.flat_map(move |regex| regex.captures_iter(text))
    }

    /// The first place where it matches.
    pub(super) fn find(&self, text: &str) -> Option<Range<usize>> {
        self.regex()?.find(text).map(|found| found.range())
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    /// What is wrong with it.
    pub(super) fn problem(&self) -> Option<String> {
        let wrong = |error: regex::Error| format!("`{}`: {error}", self.source);
        match self.source.trim() {
            "" | "//" => Some("an empty pattern matches everything".to_owned()),
            _ => self.build().err().map(wrong),
        }
    }

    fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| self.build().ok()).as_ref()
    }

    fn build(&self) -> Result<Regex, regex::Error> {
        let inner = self.source.strip_prefix('/');
        let source = match inner.and_then(|rest| rest.strip_suffix('/')) {
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

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}
