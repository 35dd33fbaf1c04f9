//! Patterns: a literal, or a regular expression between slashes.
//!
//! Every pattern has literals of which any match of it must contain one. One automaton looks for all those
//! literals at once; a regular expression is compiled only when its literal was seen, and is tried only
//! on the lines around it. So the cost of a text does not grow with the number of patterns.
//!
//! Patterns ignore letter case. They are matched against the [screened](super::screen) text, in which
//! every run of blanks is one space.

use std::ops::Range;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

use super::literals;

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Nothing to look for.
    #[error("the pattern is empty")]
    Empty,
    /// There is no literal to look for.
    #[error("`{0}` has no plain text of two characters or more that every match contains")]
    NoLiteral(String),
    /// Not a regular expression.
    #[error("`{0}` is not a regular expression: {1}")]
    Syntax(String, String),
}

/// What to look for in a text.
#[derive(Debug)]
pub(crate) struct Pattern {
    literals: Vec<String>,
    regex: Option<LazyRegex>,
}

#[derive(Debug)]
struct LazyRegex {
    source: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Reads a pattern as it is written in a knowledge file.
    pub(crate) fn parse(source: &str) -> Result<Self, PatternError> {
        let inner = source
            .strip_prefix('/')
            .and_then(|rest| rest.strip_suffix('/'));
        match inner {
            Some(regex) => Self::regex(regex, literals::required(regex)),
            None if source.trim().is_empty() => Err(PatternError::Empty),
            None => Ok(Self {
                literals: vec![source.to_owned()],
                regex: None,
            }),
        }
    }

    /// A regular expression of which every match contains one of the literals.
    pub(crate) fn regex(source: &str, literals: Option<Vec<String>>) -> Result<Self, PatternError> {
        let literals = literals.ok_or_else(|| PatternError::NoLiteral(source.to_owned()))?;
        let regex = LazyRegex {
            source: source.to_owned(),
            compiled: OnceLock::new(),
        };
        Ok(Self {
            literals,
            regex: Some(regex),
        })
    }

    /// What any match contains one of.
    pub(crate) fn literals(&self) -> &[String] {
        &self.literals
    }

    /// Compiles the regular expression now, to find its mistakes.
    pub(crate) fn check(&self) -> Result<(), PatternError> {
        match &self.regex {
            Some(regex) => regex
                .build()
                .map(|_| ())
                .map_err(|error| PatternError::Syntax(regex.source.clone(), error.to_string())),
            None => Ok(()),
        }
    }

    /// The match nearest to the literal that was seen at `hit`, within `window`.
    pub(crate) fn find(
        &self,
        text: &[u8],
        window: Range<usize>,
        hit: Range<usize>,
    ) -> Option<Range<usize>> {
        match &self.regex {
            None => Some(hit),
            // The window's end is cut off but its start is only where the search begins, so that `^` still
            // means the start of a line.
            Some(regex) => regex
                .get()?
                .find_at(&text[..window.end], window.start)
                .map(|found| found.range()),
        }
    }

    /// The named groups of the match within `window`.
    pub(crate) fn captures<'t>(
        &self,
        text: &'t [u8],
        window: Range<usize>,
    ) -> Option<regex::bytes::Captures<'t>> {
        self.regex
            .as_ref()?
            .get()?
            .captures_at(&text[..window.end], window.start)
    }

    #[cfg(test)]
    pub(crate) fn source(&self) -> Option<&str> {
        self.regex.as_ref().map(|regex| regex.source.as_str())
    }
}

impl LazyRegex {
    fn build(&self) -> Result<Regex, regex::Error> {
        RegexBuilder::new(&self.source)
            .case_insensitive(true)
            .multi_line(true)
            .unicode(false)
            .build()
    }

    fn get(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| self.build().ok()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_nothing_to_look_for_is_refused() {
        assert!(matches!(
            Pattern::parse(r"/\d+/"),
            Err(PatternError::NoLiteral(_))
        ));
        assert!(matches!(Pattern::parse(" "), Err(PatternError::Empty)));
        assert!(matches!(
            Pattern::parse("/abc[/").unwrap().check(),
            Err(PatternError::Syntax(..))
        ));
    }
}
