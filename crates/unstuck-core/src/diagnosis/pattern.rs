//! Text patterns of rules: a literal, or a regular expression between slashes.
//!
//! Every pattern has literals of which any match contains one. One index searches for all literals at once; a regular
//! expression is compiled only when its literal was found, and is tried only on the lines around it. So the cost of a
//! text does not grow with the number of patterns.
//!
//! Patterns are case-insensitive. They are matched against [normalized](super::normalize) text, in which every run of
//! blanks is one space.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use regex_automata::Input;
use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::syntax;

use crate::regex_literals;

/// An error in a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The pattern is empty.
    #[error("the pattern is empty")]
    Empty,
    /// The pattern contains no literal to search for.
    #[error("`{0}` needs a literal of at least two characters that every match contains")]
    NoLiteral(String),
    /// The regular expression is invalid.
    #[error("invalid regular expression `{0}`: {1}")]
    Syntax(String, String),
}

/// A text pattern.
#[derive(Debug)]
pub(crate) struct TextPattern {
    literals: Vec<String>,
    regex: Option<LazyRegex>,
}

/// A regular expression that is compiled on first use, and optimized when used often.
#[derive(Debug)]
struct LazyRegex {
    source: String,
    /// Further literal sets; a match contains one literal of each.
    required: OnceLock<Vec<Vec<String>>>,
    uses: AtomicU32,
    /// Compiles quickly, and is fast enough on a single line.
    quick_to_compile: OnceLock<Option<Regex>>,
    /// Compiles slowly, then matches several times as fast.
    fast: OnceLock<Option<Regex>>,
}

/// The number of uses after which optimized compilation pays off.
const FAST_AFTER_USES: u32 = 24;
/// The length of a text for which it pays off at once.
const FAST_FROM_LEN: usize = 512;
/// Maximum size of a compiled expression, in bytes.
const SIZE_LIMIT: usize = 10 << 20;

impl TextPattern {
    /// Parses a pattern from a knowledge file.
    pub(crate) fn parse(source: &str) -> Result<Self, PatternError> {
        let inner = source
            .strip_prefix('/')
            .and_then(|rest| rest.strip_suffix('/'));
        match inner {
            Some(regex) => Self::regex(regex, regex_literals::required_literals(regex)),
            None if source.trim().is_empty() => Err(PatternError::Empty),
            None => Ok(Self {
                literals: vec![source.to_ascii_lowercase()],
                regex: None,
            }),
        }
    }

    /// Creates a regular expression of which every match contains one of the literals.
    pub(crate) fn regex(source: &str, literals: Option<Vec<String>>) -> Result<Self, PatternError> {
        let literals = literals.ok_or_else(|| PatternError::NoLiteral(source.to_owned()))?;
        let regex = LazyRegex {
            source: source.to_owned(),
            required: OnceLock::new(),
            uses: AtomicU32::new(0),
            quick_to_compile: OnceLock::new(),
            fast: OnceLock::new(),
        };
        Ok(Self {
            literals,
            regex: Some(regex),
        })
    }

    /// The literals of which any match contains one, in lower case.
    pub(crate) fn literals(&self) -> &[String] {
        &self.literals
    }

    /// Compiles the regular expression now, to find errors.
    pub(crate) fn check(&self) -> Result<(), PatternError> {
        match &self.regex {
            Some(regex) => regex
                .build(CompileEffort::Swift)
                .map(|_| ())
                .map_err(|error| {
                    let cause = error.syntax_error().map(ToString::to_string);
                    PatternError::Syntax(
                        regex.source.clone(),
                        cause.unwrap_or_else(|| error.to_string()),
                    )
                }),
            None => Ok(()),
        }
    }

    /// Returns true if the pattern is a plain literal.
    pub(crate) fn is_literal(&self) -> bool {
        self.regex.is_none()
    }

    /// Returns the first match of the regular expression within `window`.
    pub(crate) fn find(&self, text: &[u8], window: Range<usize>) -> Option<Range<usize>> {
        let regex = self.regex.as_ref()?.compiled_for(&text[window.clone()])?;
        regex
            .find(window_input(text, window))
            .map(|found| found.range())
    }

    /// Returns the first match of the regular expression within `window`, with the requested named groups.
    pub(crate) fn captures(
        &self,
        text: &[u8],
        window: Range<usize>,
        groups: &[&'static str],
    ) -> Option<(Range<usize>, NamedGroups)> {
        let regex = self.regex.as_ref()?.compiled_for(&text[window.clone()])?;
        let mut captures = regex.create_captures();
        regex.captures(window_input(text, window), &mut captures);
        let range = captures.get_match()?.range();
        let named = |name: &&'static str| {
            let group = &text[captures.get_group_by_name(name)?.range()];
            Some((*name, String::from_utf8_lossy(group).into_owned()))
        };
        Some((range, groups.iter().filter_map(named).collect()))
    }

    #[cfg(test)]
    pub(crate) fn source(&self) -> Option<&str> {
        self.regex.as_ref().map(|regex| regex.source.as_str())
    }
}

/// Named groups and the text they matched.
pub(crate) type NamedGroups = Vec<(&'static str, String)>;

/// Limits a search to the window. Its end is a real end, but its start is only where the search begins, so that `^`
/// still means the start of a line.
fn window_input(text: &[u8], window: Range<usize>) -> Input<'_> {
    Input::new(&text[..window.end]).range(window.start..)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompileEffort {
    Light,
    Swift,
}

impl LazyRegex {
    /// Compiles without the prefix searches of the `regex` crate: a window is short, and its literal is known to be
    /// present.
    fn build(&self, effort: CompileEffort) -> Result<Regex, Box<BuildError>> {
        let is_named = ["(?P<", "(?<"]
            .iter()
            .any(|group| self.source.contains(group));
        let captures = if is_named {
            WhichCaptures::All
        } else {
            WhichCaptures::Implicit
        };
        let config = Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(SIZE_LIMIT))
            .which_captures(captures)
            .auto_prefilter(false)
            .onepass(false)
            .dfa(false)
            .hybrid(effort == CompileEffort::Swift);
        let syntax = syntax::Config::new()
            .case_insensitive(true)
            .multi_line(true)
            .unicode(false)
            .utf8(false);
        Regex::builder()
            .configure(config)
            .syntax(syntax)
            .build(&self.source)
            .map_err(Box::new)
    }

    /// Returns the expression compiled for this window; none if a required literal is missing.
    fn compiled_for(&self, window: &[u8]) -> Option<&Regex> {
        let required = self
            .required
            .get_or_init(|| regex_literals::all_required_literals(&self.source));
        let there = |literal: &String| contains(window, literal.as_bytes());
        if !required.iter().all(|set| set.iter().any(there)) {
            return None;
        }
        let len = window.len();
        let is_rare = || self.uses.fetch_add(1, Ordering::Relaxed) < FAST_AFTER_USES;
        let (compiled, effort) = if len <= FAST_FROM_LEN && is_rare() {
            (&self.quick_to_compile, CompileEffort::Light)
        } else {
            (&self.fast, CompileEffort::Swift)
        };
        compiled.get_or_init(|| self.build(effort).ok()).as_ref()
    }
}

/// Returns true if a text contains a literal, ignoring case.
fn contains(text: &[u8], literal: &[u8]) -> bool {
    let Some(first) = literal.first() else {
        return true;
    };
    let starts = |window: &[u8]| {
        window[0].eq_ignore_ascii_case(first) && window.eq_ignore_ascii_case(literal)
    };
    text.windows(literal.len()).any(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_without_a_literal_is_rejected() {
        assert!(matches!(
            TextPattern::parse(r"/\d+/"),
            Err(PatternError::NoLiteral(_))
        ));
        assert!(matches!(TextPattern::parse(" "), Err(PatternError::Empty)));
        assert!(matches!(
            TextPattern::parse("/abc[/").unwrap().check(),
            Err(PatternError::Syntax(..))
        ));
    }
}
